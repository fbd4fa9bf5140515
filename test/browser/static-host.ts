import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const root = fileURLToPath(new URL('../..', import.meta.url))

const types: Record<string, string> = {
  '.js': 'text/javascript',
  '.wasm': 'application/wasm',
  '.onnx': 'application/octet-stream',
}

const policy = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "connect-src 'self'",
  "require-trusted-types-for 'script'",
].join('; ')

const page = '<!doctype html><title>Host</title><input type="file"><script type="module" src="page.js"></script>'
const script = "import * as device from '/stemwork/dist/browser/index.js'\nglobalThis.device = device\n"

export interface StaticHost {
  base: string
  /** Bytes of the response bodies sent, by path. */
  sent: Map<string, number>
  close(): Promise<void>
}

const compressed = new Map<string, Buffer>()

/**
 * Serves a page and the package's files from one origin, compressed as browsers request, under a policy that forbids
 * everything unnecessary.
 */
export async function startHost(missing: readonly string[] = []): Promise<StaticHost> {
  const sent = new Map<string, number>()
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const path = normalize(new URL(request.url ?? '/', 'http://host').pathname)
    const common = { 'content-security-policy': policy, 'cache-control': 'no-store' }
    if (path === '/' || path === '/page.js') {
      const type = path === '/' ? 'text/html' : 'text/javascript'
      return response.writeHead(200, { ...common, 'content-type': type }).end(path === '/' ? page : script)
    }
    const isPublic = /^\/stemwork\/(dist\/browser|models)\/[\w/.-]+$/.test(path) && !missing.includes(path)
    const content = isPublic && (await readFile(root + path.slice('/stemwork/'.length)).catch(() => undefined))
    if (!content) return response.writeHead(404, common).end()
    const encoding = /\bbr\b/.test(request.headers['accept-encoding'] ?? '') ? 'br' : 'gzip'
    const body = compress(`${encoding} ${path}`, content, encoding)
    sent.set(path, (sent.get(path) ?? 0) + body.length)
    return response
      .writeHead(200, { ...common, 'content-type': types[extname(path)], 'content-encoding': encoding })
      .end(body)
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    base: `http://localhost:${(server.address() as AddressInfo).port}`,
    sent,
    // A browser opens connections in advance, which count as active even before they carry a request.
    close: () => new Promise((resolve) => (server.close(() => resolve()), server.closeAllConnections())),
  }
}

/** Compresses at a level that takes hardly any time. */
function compress(key: string, content: Buffer, encoding: 'br' | 'gzip'): Buffer {
  const known = compressed.get(key)
  if (known) return known
  const body =
    encoding === 'br'
      ? brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } })
      : gzipSync(content)
  compressed.set(key, body)
  return body
}
