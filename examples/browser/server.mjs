// A page that separates songs in the browser, and one (/live) that separates playing audio. This server only serves
// files; nothing is uploaded. `stemwork/browser` loads its workers, its WebAssembly and the model from the package, at
// /stemwork/.
import { createReadStream } from 'node:fs'
import { createServer } from 'node:http'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

const packageFolder = new URL('../../', import.meta.resolve('stemwork/browser'))
const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.wasm': 'application/wasm',
  '.onnx': 'application/octet-stream',
}
const policy =
  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; " +
  "require-trusted-types-for 'script'"

function fileAt(path) {
  if (path === '/') return new URL('page.html', import.meta.url)
  if (path === '/live') return new URL('live.html', import.meta.url)
  if (path === '/page.js' || path === '/live.js') return new URL(path.slice(1), import.meta.url)
  const [, inPackage] = /^\/stemwork\/((?:dist\/browser|models\/embedded)\/[\w-]+\.(?:js|wasm|onnx))$/.exec(path) ?? []
  return inPackage && new URL(inPackage, packageFolder)
}

const server = createServer((request, response) => {
  const file = fileAt(request.url?.split('?', 1)[0])
  if (!file) return response.writeHead(404).end()
  const content = createReadStream(fileURLToPath(file))
  content.once('open', () => {
    response.writeHead(200, { 'content-type': types[extname(file.pathname)], 'content-security-policy': policy })
    content.pipe(response)
  })
  content.once('error', () => response.writeHead(404).end())
})
const port = Number(process.env.PORT ?? 8080)
server.listen(port, '127.0.0.1', () => console.log(`http://localhost:${port}`))
