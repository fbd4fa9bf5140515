import { ClientError, networkError } from './client-error.js'
import type { Connection } from './connection.js'
import { backOff, pause } from './pause.js'
import type { TransferOptions } from './upload-source.js'

const firstAskMs = 100
/** Before a broken download continues: clients that a service lost together should not return together. */
const back = { firstMs: 500, longestMs: 500 }

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

/**
 * Opens a result link; it carries its own permission, so no key is sent. Where the connection breaks, the download
 * continues with the next byte.
 *
 * @throws ClientError; the signal's reason
 */
export async function openDownload(
  connection: Connection,
  url: string,
  { signal, range, onProgress }: DownloadOptions = {},
): Promise<Download> {
  const open = (wanted: DownloadOptions['range']) => {
    const attempt = () =>
      connection.once(url, { headers: rangeHeader(wanted), signal }).catch((error: unknown) => {
        if (isAddress(url)) throw error
        throw new TypeError(`download() needs a link from a job's result, not ${JSON.stringify(url)}.`)
      })
    return connection.retrying(attempt, { isRepeatable: true, signal })
  }
  const response = await open(range)
  const { headers } = response
  const etag = headers.get('etag') ?? ''
  // A weak tag does not promise the same bytes. Positions in a compressed body are not those of the file.
  if (!etag.startsWith('"') || headers.has('content-encoding') || !headers.has('content-length'))
    return downloadOf(response, url, { signal, onProgress })
  const first = response.status === 206 ? (range?.start ?? 0) : 0
  const resume = async (done: number) => {
    const rest = await open({ ...range, start: first + done })
    const isRest = rest.headers.get('content-range')?.startsWith(`bytes ${first + done}-`) === true
    if (isRest && rest.headers.get('etag') === etag) return rest.body
    await rest.body?.cancel()
    return undefined
  }
  return downloadOf(response, url, { signal, onProgress }, resume)
}

/** Opens the rest of a download of which some bytes have arrived; undefined if the file is another one by now. */
type Resume = (done: number) => Promise<ReadableStream<Uint8Array> | null | undefined>

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

function downloadOf(
  response: Response,
  url: string,
  { signal, onProgress }: DownloadOptions,
  resume?: Resume,
): Download {
  const length = Number(response.headers.get('content-length') ?? NaN)
  const bytes = Number.isFinite(length) ? length : undefined
  const contentType = response.headers.get('content-type') ?? 'application/octet-stream'
  const stream = counted(response.body, (done) => onProgress?.({ bytes: done, totalBytes: bytes }), signal, resume)
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
  resume?: Resume,
): ReadableStream<Uint8Array> {
  let reader = body?.getReader()
  let [bytes, resumedAt] = [0, -1]
  let isCanceled = false
  const read = async () => {
    for (;;) {
      try {
        return await reader?.read()
      } catch (error) {
        signal?.throwIfAborted()
        // Without a byte more, another attempt would not get further.
        if (!resume || bytes === resumedAt) throw networkError(error)
        await pause(backOff(0, back), signal)
        if (isCanceled) return undefined
        const rest = await resume((resumedAt = bytes))
        if (isCanceled) return await rest?.cancel()
        if (!rest) throw networkError(error)
        reader = rest.getReader()
      }
    }
  }
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = (await read()) ?? { done: true, value: undefined }
      if (isCanceled) return
      if (done || value === undefined) return controller.close()
      controller.enqueue(value)
      onBytes((bytes += value.byteLength))
    },
    async cancel(reason) {
      isCanceled = true
      // A broken connection has nothing left to end.
      await reader?.cancel(reason).catch(() => {})
    },
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
