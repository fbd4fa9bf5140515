import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { AddressPolicy } from './address-guard.js'
import { type Deadline, type FetchTimeouts, TooSlowError } from './deadline.js'
import { tooLarge } from '../errors.js'
import { downloadFailed } from './fetch-failure.js'

export interface BodyLimits {
  maxBytes: number
  timeouts: Pick<FetchTimeouts, 'idleMs' | 'minBytesPerSecond'>
  deadline: Deadline
  /** What to throw for a failure of the connection. */
  failure(error: unknown): unknown
  /** Frees the connection. */
  release(): void
}

/**
 * The body, piece by piece as it is asked for, and never more than `maxBytes` of it. We ask for no encoding; gzip is decoded for
 * servers that apply it nevertheless, and the limit counts what comes out, so that a bomb is no larger than a file.
 */
export async function* responseBody(
  response: IncomingMessage,
  limits: BodyLimits,
): AsyncGenerator<Uint8Array, void, void> {
  const { maxBytes, deadline } = limits
  const { idleMs, minBytesPerSecond } = limits.timeouts
  const pieces = decoded(response)[Symbol.asyncIterator]()
  let bytes = 0
  /** Counts only while we wait: a slow disk is not a slow server. */
  let waitedMs = 0
  try {
    for (;;) {
      // What a server may take in all grows with what it has sent.
      if (waitedMs > idleMs + (bytes / minBytesPerSecond) * 1000) {
        throw new TooSlowError(`${bytes} bytes in ${Math.round(waitedMs)} ms, less than ${minBytesPerSecond} a second`)
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

/** Throws what the headers alone tell: an encoding we do not know, or a length beyond the limit. */
export function checkHeaders(response: IncomingMessage, maxBytes: number, policy: AddressPolicy): void {
  const encoding = encodingOf(response)
  if (encoding !== 'identity' && encoding !== 'gzip') {
    throw downloadFailed(new Error(`the answer is encoded as ${encoding}`), policy, { retryable: false })
  }
  if (Number(response.headers['content-length']) > maxBytes) throw tooLarge(maxBytes)
}

function decoded(response: IncomingMessage): Readable {
  if (encodingOf(response) !== 'gzip') return response
  const gunzip = createGunzip()
  // Heard by whoever reads; a reader that has left must not end the host.
  gunzip.on('error', () => {})
  response.on('error', (error) => gunzip.destroy(error))
  response.on('close', () => {
    if (!response.complete) gunzip.destroy(new Error('the answer ended too early'))
  })
  return response.pipe(gunzip)
}

function encodingOf(response: IncomingMessage): string {
  const encoding = response.headers['content-encoding']?.trim().toLowerCase() || 'identity'
  return encoding === 'x-gzip' ? 'gzip' : encoding
}
