import { ClientError, networkError } from './client-error.js'
import type { Connection } from './connection.js'
import { pause } from './pause.js'
import type { TransferOptions } from './upload-source.js'

const firstAskMs = 100

export interface DownloadOptions extends TransferOptions {
  /** Only these bytes, both ends included. */
  range?: { start: number; end?: number }
}

/** A started download. Read it by either `stream` or `blob`. */
export interface Download {
  /** Bytes of the answer, if the service states them. */
  bytes: number | undefined
  /** Bytes of the whole file, even if the answer is only a part; undefined if the service does not state them. */
  totalBytes: number | undefined
  contentType: string
  /** Name for saving, for example `vocals.wav`. */
  fileName: string
  stream: ReadableStream<Uint8Array>
  blob(): Promise<Blob>
}

/** Opens a result link; it carries its own permission, so no key is sent. @throws ClientError; the signal's reason */
export async function openDownload(
  connection: Connection,
  url: string,
  { signal, range, onProgress }: DownloadOptions = {},
): Promise<Download> {
  const attempt = () =>
    connection.once(url, { headers: rangeHeader(range), signal }).catch((error: unknown) => {
      if (isAddress(url)) throw error
      throw new TypeError(`download() needs a link from a job's result, not ${JSON.stringify(url)}.`)
    })
  const response = await connection.retrying(attempt, { isRepeatable: true, signal })
  return downloadOf(response, url, { signal, onProgress })
}

/** Opens a result that its job still produces, as soon as it has bytes. @throws ClientError; the signal's reason */
export async function openGrowing(
  connection: Connection,
  path: string,
  { signal, range, onProgress }: DownloadOptions = {},
): Promise<Download> {
  // Polls sooner than the service asks at first, so that a watching user waits only briefly.
  for (let soonMs = firstAskMs; ; soonMs *= 2) {
    try {
      const response = await connection.send(path, { headers: rangeHeader(range), signal })
      return downloadOf(response, response.url, { signal, onProgress })
    } catch (error) {
      // With `Retry-After`, the result is only not there yet.
      const isEarly =
        ClientError.is(error) && (error.status === 404 || error.status === 416) && error.retryAfterMs !== undefined
      if (!isEarly) throw error
      await pause(Math.min(soonMs, error.retryAfterMs ?? 0), signal)
    }
  }
}

/** In a browser, an address may be relative to the page. */
function isAddress(url: string): boolean {
  return URL.canParse(url, (globalThis as { location?: { href: string } }).location?.href)
}

function rangeHeader(range: DownloadOptions['range']): Record<string, string> {
  return range ? { range: `bytes=${range.start}-${range.end ?? ''}` } : {}
}

function downloadOf(response: Response, url: string, { signal, onProgress }: DownloadOptions): Download {
  const length = Number(response.headers.get('content-length') ?? NaN)
  const bytes = Number.isFinite(length) ? length : undefined
  const contentType = response.headers.get('content-type') ?? 'application/octet-stream'
  const stream = counted(response.body, (done) => onProgress?.({ bytes: done, totalBytes: bytes }), signal)
  const whole = Number(/\/(\d+)$/.exec(response.headers.get('content-range') ?? '')?.[1] ?? NaN)
  return {
    bytes,
    totalBytes: Number.isFinite(whole) ? whole : bytes,
    contentType,
    fileName: fileName(response.headers.get('content-disposition'), url),
    stream,
    blob: () => new Response(stream, { headers: { 'content-type': contentType } }).blob(),
  }
}

function counted(
  body: ReadableStream<Uint8Array> | null,
  onBytes: (bytes: number) => void,
  signal: AbortSignal | undefined,
): ReadableStream<Uint8Array> {
  const reader = body?.getReader()
  let bytes = 0
  return new ReadableStream({
    async pull(controller) {
      const read = reader?.read().catch((error: unknown) => {
        signal?.throwIfAborted()
        throw networkError(error)
      })
      const { done, value } = (await read) ?? { done: true, value: undefined }
      if (done || value === undefined) return controller.close()
      controller.enqueue(value)
      onBytes((bytes += value.byteLength))
    },
    cancel: async (reason) => reader?.cancel(reason),
  })
}

function fileName(disposition: string | null, url: string): string {
  const encoded = /filename\*=UTF-8''([^\s;]+)/i.exec(disposition ?? '')?.[1]
  const plain = /filename="([^"]+)"/.exec(disposition ?? '')?.[1]
  // The URL may be empty or relative if the host's own `fetch` answered.
  const last = url.split(/[?#]/, 1)[0]?.split('/').at(-1)
  return [decoded(encoded), plain, last].find(isFileName) ?? 'download'
}

/** Undefined if the name is not UTF-8. */
function decoded(name = ''): string | undefined {
  try {
    return decodeURIComponent(name)
  } catch {
    return undefined
  }
}

/** Whether the name is safe to append to a folder's path: it names no folder, and every system accepts it. */
function isFileName(name: string | undefined): name is string {
  return name !== undefined && !/^\.{0,2}$|[/\\\p{Cc}]/u.test(name)
}
