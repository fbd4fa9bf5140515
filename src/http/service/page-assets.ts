import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { installedFile } from '../../core/engine/package-files.js'
import { type ApiAnswer, empty } from '../routing/answer.js'
import { acceptedEncoding } from '../routing/accept.js'
import type { Call } from '../routing/call.js'
import { notFound, type Problem } from '../routing/problem.js'
import { definePageRoute, type Route } from '../routing/route.js'

const types: Record<string, string | undefined> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  txt: 'text/plain; charset=utf-8',
  webmanifest: 'application/manifest+json',
}

const offlineWorker = 'offline-worker.js'
/** Lets the service worker control the page, too, which lies beside the folder of its parts. */
const workerScope = { 'service-worker-allowed': '../console' }

const known = new Map<string, Promise<PackedText>>()

/** Returns a part of a page, compressed as the client accepts it, or 304. @throws Problem `NOT_FOUND`. */
async function pageAsset(call: Call, name: string): Promise<ApiAnswer> {
  const contentType = types[/^[\w-]+\.(js|css|svg|png|txt|webmanifest)$/.exec(name)?.[1] ?? '']
  if (contentType === undefined) throw missing()
  let packed = known.get(name)
  if (!packed) {
    // A page has many scripts, with names that the build makes; everything in that folder is public.
    packed = readFile(join(installedFile('dist/console/'), name)).then(packText, (error: unknown) => {
      throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? missing() : error
    })
    packed.catch(() => known.delete(name))
    known.set(name, packed)
  }
  return packedAnswer(call, await packed, contentType, name === offlineWorker ? workerScope : {})
}

/** Names of the parts of `/console`, which it keeps for use without a network. */
export async function consoleParts(): Promise<string[]> {
  const names = await readdir(installedFile('dist/console'))
  return names.filter((name) => /^[\w-]+\.(js|css|svg|webmanifest)$/.test(name) && !/^(docs|operator)/.test(name))
}

function missing(): Problem {
  return notFound('The page has no such part.')
}

/** The route of the parts of a page. */
export function pageAssetRoute(page: 'console' | 'docs' | 'operator', operation: string): Route {
  return definePageRoute({
    route: `GET /${page}/:asset`,
    operation,
    access: 'open',
    handle: (call, { params }) => pageAsset(call, params.asset),
  })
}

const compressBrotli = promisify(brotliCompress)
const compressGzip = promisify(gzip)

/** A text, or a small picture, in its content encodings, each created once. */
export interface PackedText {
  hash: string
  br: Buffer
  gzip: Buffer
  identity: Buffer
}

export async function packText(content: string | Buffer, quality = constants.BROTLI_MAX_QUALITY): Promise<PackedText> {
  const identity = typeof content === 'string' ? Buffer.from(content) : content
  const { BROTLI_PARAM_SIZE_HINT: sizeHint, BROTLI_PARAM_QUALITY: brotliQuality } = constants
  const params = { [sizeHint]: identity.byteLength, [brotliQuality]: quality }
  const [br, zipped] = await Promise.all([compressBrotli(identity, { params }), compressGzip(identity, { level: 9 })])
  return { hash: hash('sha256', identity).slice(0, 32), br, gzip: zipped, identity }
}

/** The text, or 304 for a client that already has it. */
export function packedAnswer(
  call: Call,
  packed: PackedText,
  contentType: string,
  headers: Record<string, string> = {},
): ApiAnswer {
  const encoding = acceptedEncoding(call.request.headers.get('accept-encoding'))
  const etag = `"${packed.hash}-${encoding}"`
  const own = {
    'content-type': contentType,
    etag,
    vary: 'accept-encoding',
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
    ...headers,
  }
  if (call.request.headers.get('if-none-match')?.includes(etag)) return empty(304, own)
  const bytes = packed[encoding]
  return {
    status: 200,
    headers: {
      ...own,
      'content-length': String(bytes.byteLength),
      ...(encoding === 'identity' ? {} : { 'content-encoding': encoding }),
    },
    body: bytes,
  }
}
