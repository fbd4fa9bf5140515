import { badAnswer, ClientError } from './client-error.js'
import { type Connection, longestWaitMs } from './connection.js'
import { backOff, pause } from './pause.js'
import { sendBytes, type UploadOptions } from './upload.js'
import { sizeOf } from './upload-source.js'

/** Bytes of one request: proxies may buffer a whole body, or refuse a longer one. */
const pieceBytes = 32 * 1024 ** 2
/** Consecutive attempts without progress after which the upload fails. */
const maxFruitless = 8
const back = { firstMs: 500, longestMs: 10_000 }
const version = { 'tus-resumable': '1.0.0' }

/**
 * Uploads the source by tus 1.0; after an interruption, resumes at the stored offset.
 *
 * @param url endpoint that creates uploads
 * @throws ClientError; the signal's reason
 */
export async function putResumable(
  connection: Connection,
  url: string,
  source: Blob | Uint8Array,
  options: UploadOptions & { hasOwnFetch: boolean },
): Promise<{ downloadUrl: string }> {
  const { signal, onProgress, onInterrupted } = options
  const totalBytes = sizeOf(source)
  const begun = await connection.retrying(
    () =>
      connection.once(url, {
        method: 'POST',
        signal,
        headers: { ...connection.authorization, ...version, 'upload-length': String(totalBytes) },
      }),
    { isRepeatable: true, signal },
  )
  const location = begun.headers.get('location')
  const downloadUrl = begun.headers.get('download-url')
  if (location === null || downloadUrl === null)
    throw badAnswer(begun.status, 'it does not say where to continue the upload')
  const target = new URL(location, url).href
  let offset = 0
  let isOffsetKnown = true
  let [fruitless, pauses] = [0, 0]
  const progressed = () => (fruitless = pauses = 0)
  while (offset < totalBytes) {
    const before = offset
    try {
      if (!isOffsetKnown) offset = await storedOffset(connection, target, signal)
      isOffsetKnown = true
      if (offset > before) progressed()
      if (offset >= totalBytes) break
      const piece = source.slice(offset, offset + pieceBytes)
      const from = offset
      const headers = {
        ...connection.authorization,
        ...version,
        'upload-offset': String(offset),
        'content-type': 'application/offset+octet-stream',
      }
      await sendBytes(connection, { method: 'PATCH', url: target, headers }, piece, {
        ...options,
        onProgress: ({ bytes }) => onProgress?.({ bytes: from + bytes, totalBytes }),
      })
      offset += sizeOf(piece)
      progressed()
    } catch (error) {
      signal?.throwIfAborted()
      const isPatient = onInterrupted !== undefined && isLost(error)
      if (!isPassing(error) || (!isPatient && ++fruitless >= maxFruitless)) throw error
      onInterrupted?.()
      isOffsetKnown = false
      await pause(Math.min(Math.max(backOff(pauses++, back), error.retryAfterMs ?? 0), longestWaitMs), signal)
    }
  }
  return { downloadUrl }
}

async function storedOffset(connection: Connection, url: string, signal: AbortSignal | undefined): Promise<number> {
  const { headers, status } = await connection.retrying(
    () => connection.once(url, { method: 'HEAD', signal, headers: { ...connection.authorization, ...version } }),
    { isRepeatable: true, signal },
  )
  const offset = Number(headers.get('upload-offset') ?? NaN)
  if (!Number.isInteger(offset)) throw badAnswer(status, 'it does not say how much is stored')
  return offset
}

/**
 * Whether the error is temporary: an interruption, a proxy's report of one, an unexpected offset, or a refusal that
 * does not last, as that of a full storage does.
 */
function isPassing(error: unknown): error is ClientError {
  if (!ClientError.is(error)) return false
  const { status, retryAfterMs = 0 } = error
  if (isLost(error) || [408, 409, 423].includes(status)) return true
  return (status === 429 || status >= 500) && retryAfterMs <= longestWaitMs
}

/** Whether the service itself did not answer. */
function isLost(error: unknown): boolean {
  return ClientError.is(error) && [0, 502, 504].includes(error.status)
}
