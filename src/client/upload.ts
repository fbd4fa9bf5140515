import { answerError, ClientError, networkError } from './client-error.js'
import type { Connection } from './connection.js'
import { isWhole, sizeOf, type TransferOptions, type UploadSource } from './upload-source.js'

export interface UploadOptions extends TransferOptions {
  /**
   * Called at each interruption of a resumable upload, also by a temporary refusal. With this function, the upload
   * waits for a lost connection until the signal fires. Otherwise, it fails after eight attempts in a row that sent
   * nothing.
   */
  onInterrupted?(): void
}

/**
 * PUTs the source to its upload link; retries temporary refusals and broken connections.
 * @throws ClientError; the signal's reason
 */
export async function putFile(
  connection: Connection,
  url: string,
  source: UploadSource,
  options: TransferOptions & { hasOwnFetch: boolean },
): Promise<void> {
  let mayBeStored = false
  const send = () =>
    sendBytes(connection, { method: 'PUT', url, headers: {} }, source, options).catch((error: unknown) => {
      // A link stores one file, and only whole ones: an earlier attempt succeeded, and its answer was lost.
      if (mayBeStored && ClientError.is(error) && error.code === 'CONFLICT') return
      mayBeStored = true
      throw error
    })
  // A stream can be read only once.
  await (isWhole(source) ? connection.retrying(send, { isRepeatable: true, signal: options.signal }) : send())
}

/** Most bytes of a body for which a redirect is explained. */
const shortBytes = 32 * 1024 ** 2

/** Request that carries the bytes. */
export interface SendTarget {
  method: 'PUT' | 'PATCH'
  url: string
  headers: Record<string, string>
}

/** Sends a body and reports its progress. @throws ClientError; the signal's reason */
export async function sendBytes(
  connection: Connection,
  { method, url, headers }: SendTarget,
  source: UploadSource,
  options: TransferOptions & { hasOwnFetch: boolean },
): Promise<void> {
  options.signal?.throwIfAborted()
  // `fetch` does not report an upload's progress, and browsers stream bodies over HTTP/2 only.
  const Request = options.hasOwnFetch ? undefined : browserRequest()
  if (Request && isWhole(source)) return sendByXhr(new Request(), { method, url, headers }, source, options)
  // Browsers never get here, so their bundles can leave it out.
  const { streamedBody } = await import('./streamed-body.js')
  let failure: { error: unknown } | undefined
  const body = streamedBody(source, options, (error) => (failure = { error }))
  // A followed redirect may become a GET of a page, which would look like success. Node's fetch keeps all of a body in
  // memory, to send it again, unless redirects are errors and there is no window to ask for a password.
  const isShort = isWhole(source) && sizeOf(source) <= shortBytes
  const redirects: RequestInit = isShort ? { redirect: 'manual' } : { redirect: 'error', window: null }
  const request: RequestInit = { method, headers, signal: options.signal, ...redirects, ...body }
  const response = await connection.once(url, request).catch((error) => {
    throw failure === undefined ? error : failure.error
  })
  await response.body?.cancel()
}

/** The part of a browser's XMLHttpRequest that is used here; Node has none. */
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
    request.upload.onprogress = ({ loaded, total }) => {
      try {
        onProgress?.({ bytes: loaded, totalBytes: total })
      } catch (error) {
        reject(error)
        request.abort()
      }
    }
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
