import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'
import { installedFile } from '../../core/engine/package-files.js'
import { type ApiAnswer, empty } from '../routing/answer.js'
import type { Call } from '../routing/call.js'
import { notFound } from '../routing/problem.js'
import { definePageRoute } from '../routing/route.js'
import { acceptedEncoding } from '../routing/accept.js'

const types: Record<string, string | undefined> = {
  js: 'text/javascript; charset=utf-8',
  wasm: 'application/wasm',
  onnx: 'application/octet-stream',
}
const compress = promisify(brotliCompress)
/** Compresses 14 MB in a third of a second; the result is 6 % larger than at the level that takes half a minute. */
const level = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }
/** Compressed files by path; 4.3 MB in all, in processes whose pages were used to separate. */
const compressed = new Map<string, Promise<Buffer>>()

/** The files that `stemwork/browser` loads to separate on a person's device: scripts, WebAssembly, the model. */
export const deviceFileRoute = definePageRoute({
  route: 'GET /console/device/:file',
  operation: 'getDeviceFile',
  access: 'open',
  handle: (call, { params }) => deviceFile(call, params.file),
})

async function deviceFile(call: Call, name: string): Promise<ApiAnswer> {
  const type = /^[\w-]+\.(js|wasm|onnx)$/.exec(name)?.[1]
  const path = installedFile(type === 'onnx' ? 'models/embedded/' : 'dist/browser/') + name
  const facts = type === undefined ? undefined : await stat(path).catch(() => undefined)
  if (type === undefined || !facts?.isFile()) throw notFound('The page has no such part.')
  const encoding = acceptedEncoding(call.request.headers.get('accept-encoding')) === 'br' ? 'br' : 'identity'
  const etag = `"${facts.size.toString(36)}-${Math.floor(facts.mtimeMs).toString(36)}-${encoding}"`
  const headers: Record<string, string> = {
    'content-type': types[type] ?? '',
    etag,
    vary: 'accept-encoding',
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
    // A worker's policy comes with its script.
    'content-security-policy': "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'",
  }
  if (call.request.headers.get('if-none-match')?.includes(etag)) return empty(304, headers)
  if (encoding === 'identity') {
    headers['content-length'] = String(facts.size)
    return { status: 200, headers, body: { source: bytesOf(path), idleMs: call.service.options.limits.idleMs } }
  }
  let packed = compressed.get(path)
  if (!packed) {
    packed = readFile(path).then((bytes) => compress(bytes, level))
    packed.catch(() => compressed.delete(path))
    compressed.set(path, packed)
  }
  const bytes = await packed
  headers['content-length'] = String(bytes.byteLength)
  headers['content-encoding'] = 'br'
  return { status: 200, headers, body: bytes }
}

/** Opens the file when the body is read, which never happens for HEAD. */
async function* bytesOf(path: string): AsyncGenerator<Uint8Array, void, undefined> {
  yield* createReadStream(path) as AsyncIterable<Uint8Array>
}
