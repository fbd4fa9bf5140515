import { answerError, networkError } from './client-error.js'
import type { Connection, RequestOptions } from './connection.js'

/** What can be sent: a `File` or other `Blob`, bytes, or a stream of them. In Node, `fs.openAsBlob(path)` makes a Blob of a file. */
export type UploadSource = Blob | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>

export interface TransferProgress {
  /** Bytes that have gone over to the network so far. */
  bytes: number
  /** Bytes of the whole; undefined for a stream of unknown length. */
  totalBytes: number | undefined
}

export interface TransferOptions extends RequestOptions {
  onProgress?(progress: TransferProgress): void
}

export interface UploadOptions extends TransferOptions {
  /**
   * Called each time a resumable upload loses its connection. With this function, the upload waits for the connection as long as it
   * takes, until the signal fires. Without it, the upload fails after eight attempts in a row that sent nothing.
   */
  onInterrupted?(): void
}

/** PUTs the source to an upload link. @throws ClientError; the signal's reason */
export async function putFile(
  connection: Connection,
  url: string,
  source: UploadSource,
  options: TransferOptions & { hasOwnFetch: boolean },
): Promise<void> {
  await sendBytes(connection, { method: 'PUT', url, headers: {} }, source, options)
}

/** Where bytes go. */
export interface SendTarget {
  method: 'PUT' | 'PATCH'
  url: string
  headers: Record<string, string>
}

/** Sends a body, with its progress. @throws ClientError; the signal's reason */
export async function sendBytes(
  connection: Connection,
  { method, url, headers }: SendTarget,
  source: UploadSource,
  options: TransferOptions & { hasOwnFetch: boolean },
): Promise<void> {
  options.signal?.throwIfAborted()
  // `fetch` tells nothing of an upload's progress, and browsers stream bodies over HTTP/2 only.
  const Request = options.hasOwnFetch ? undefined : browserRequest()
  if (Request && isWhole(source)) return sendByXhr(new Request(), { method, url, headers }, source, options)
  const response = await connection.once(url, {
    method,
    headers,
    signal: options.signal,
    ...countedBody(source, options),
  })
  await response.body?.cancel()
}

/** What is used of a browser's XMLHttpRequest; Node has none. */
interface UploadRequest {
  readonly upload: { onprogress: ((event: { loaded: number; total: number }) => void) | null }
  readonly status: number
  readonly responseText: string
  onload: (() => void) | null
  onerror: (() => void) | null
  onabort: (() => void) | null
  open(method: string, url: string): void
  setRequestHeader(name: string, value: string): void
  send(body: unknown): void
  abort(): void
  getResponseHeader(name: string): string | null
}

function browserRequest(): (new () => UploadRequest) | undefined {
  return (globalThis as { XMLHttpRequest?: new () => unknown }).XMLHttpRequest as (new () => UploadRequest) | undefined
}

function sendByXhr(
  request: UploadRequest,
  { method, url, headers }: SendTarget,
  source: Blob | Uint8Array,
  { signal, onProgress }: TransferOptions,
): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    const onAbort = () => request.abort()
    signal?.addEventListener('abort', onAbort, { once: true })
    const end = (settle: () => void) => () => {
      signal?.removeEventListener('abort', onAbort)
      settle()
    }
    request.open(method, url)
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.upload.onprogress = ({ loaded, total }) => onProgress?.({ bytes: loaded, totalBytes: total })
    request.onload = end(() => {
      const { status, responseText: body } = request
      if (status >= 200 && status < 300) resolve()
      else reject(answerError({ status, body, header: (name) => request.getResponseHeader(name) }))
    })
    request.onerror = end(() => reject(networkError(undefined)))
    request.onabort = end(() => reject(signal?.reason))
    request.send(source)
  })
}

export function isWhole(source: UploadSource): source is Blob | Uint8Array {
  return source instanceof Uint8Array || source instanceof Blob
}

export function sizeOf(source: Blob | Uint8Array): number {
  return source instanceof Uint8Array ? source.byteLength : source.size
}

function countedBody(source: UploadSource, { onProgress, signal }: TransferOptions): RequestInit {
  const totalBytes = isWhole(source) ? sizeOf(source) : undefined
  const iterator = counted(chunksIn(source), (bytes) => onProgress?.({ bytes, totalBytes }))
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      // Node's fetch reads an aborted body on to its end.
      if (signal?.aborted) await iterator.return(undefined)
      signal?.throwIfAborted()
      const { done, value } = await iterator.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: async () => void (await iterator.return(undefined)),
  })
  const streamed: RequestInit & { duplex: 'half' } = { body, duplex: 'half' }
  return streamed
}

function chunksIn(source: UploadSource): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  if (source instanceof Uint8Array) return [source]
  if (source instanceof Blob) return chunksOf(source.stream())
  return 'getReader' in source ? chunksOf(source) : source
}

async function* counted(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0
  for await (const chunk of chunks) {
    for (const piece of pieces(chunk)) {
      yield piece
      bytes += piece.byteLength
      onBytes(bytes)
    }
  }
}

const pieceBytes = 64 * 1024

/** Sources may hand out the whole at once, which would be progress in one step. */
function* pieces(source: Uint8Array): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < source.byteLength; at += pieceBytes) yield source.subarray(at, at + pieceBytes)
}

/** Streams are not iterable in every browser. */
async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = stream.getReader()
  let isDone = false
  try {
    for (;;) {
      const { done, value } = await reader.read()
      isDone = done
      if (done) return
      yield value
    }
  } finally {
    if (!isDone) await reader.cancel().catch(() => undefined)
  }
}
