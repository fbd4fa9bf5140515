import type { IncomingMessage } from 'node:http'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { AddressPolicy } from './address-guard.js'
import { CrowdedOutError, type Deadline, type FetchTimeouts, TooSlowError } from './deadline.js'
import { tooLarge } from '../errors.js'
import { withoutTinyChunks } from './tiny-chunks.js'
import { downloadFailed } from './fetch-failure.js'

export interface BodyLimits {
  maxBytes: number
  timeouts: Pick<FetchTimeouts, 'idleMs' | 'minBytesPerSecond' | 'haste'>
  deadline: Deadline
  /** Returns the error to throw for a failure. */
  failure(error: unknown): unknown
  /** Frees the connection. */
  release(): void
}

/**
 * The body, chunk by chunk on demand, and never more than `maxBytes`. The request asks for no encoding; gzip from
 * servers that use it anyway is decoded. The limit applies to the decoded bytes and so stops decompression bombs.
 */
export async function* responseBody(
  response: IncomingMessage,
  limits: BodyLimits,
): AsyncGenerator<Uint8Array, void, void> {
  const { maxBytes, deadline } = limits
  const { idleMs, minBytesPerSecond, haste } = limits.timeouts
  const pieces = decoded(response)[Symbol.asyncIterator]()
  let bytes = 0
  /** Counts only time spent waiting: a slow disk is not a slow server. */
  let waitedMs = 0
  try {
    for (;;) {
      // The total time allowed to a server grows with the bytes that it has sent.
      const reachedMs = (bytes / minBytesPerSecond) * 1000
      if (waitedMs > idleMs + reachedMs / haste()) {
        const what = `${bytes} bytes in ${Math.round(waitedMs)} ms`
        if (waitedMs > idleMs + reachedMs) throw new TooSlowError(`${what}, less than ${minBytesPerSecond} a second`)
        throw new CrowdedOutError(`${what}, too slow while the service fetches many inputs`)
      }
      const startedAt = performance.now()
      const stopIdle = deadline.start(idleMs, 'more of the answer')
      const { value, done } = await pieces.next().finally(stopIdle)
      waitedMs += performance.now() - startedAt
      if (done) return
      const piece: Uint8Array = value
      bytes += piece.length
      if (bytes > maxBytes) throw tooLarge(maxBytes)
      yield piece
    }
  } catch (error) {
    throw limits.failure(error)
  } finally {
    void pieces.return?.()
    limits.release()
  }
}

/** Throws if the headers show an unknown encoding or a length beyond the limit. */
export function checkHeaders(response: IncomingMessage, maxBytes: number, policy: AddressPolicy): void {
  const encoding = encodingOf(response)
  if (encoding !== 'identity' && encoding !== 'gzip') {
    throw downloadFailed(new Error(`the answer is encoded as ${encoding}`), policy, { retryable: false })
  }
  if (Number(response.headers['content-length']) > maxBytes) throw tooLarge(maxBytes)
}

function decoded(response: IncomingMessage): AsyncIterable<Uint8Array> {
  const bytes = withoutTinyChunks(response, () => new TooSlowError('the chunks of the answer have a few bytes each'))
  if (encodingOf(response) !== 'gzip') return bytes
  const gunzip = createGunzip()
  // The reader handles the error; without a reader it must not crash the host.
  pipeline(bytes, gunzip, () => {})
  return gunzip
}

function encodingOf(response: IncomingMessage): string {
  const encoding = response.headers['content-encoding']?.trim().toLowerCase() || 'identity'
  return encoding === 'x-gzip' ? 'gzip' : encoding
}
