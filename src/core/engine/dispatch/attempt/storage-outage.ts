import { setTimeout as delay } from 'node:timers/promises'
import { StemworkError, storeUnavailable } from '../../errors.js'

export interface OutageOptions {
  /** Ends the wait with its reason. */
  signal: AbortSignal
  /** How long to wait for the end of an outage, from its first failure; then `STORE_UNAVAILABLE` is thrown. */
  maxMs: number
  /** Called with each failure that does not end the wait. */
  onFailure(error: unknown): void
}

const firstWaitMs = 500
const longestWaitMs = 30_000

/**
 * Does `work`, and repeats it with growing waits while the blob store is unavailable.
 *
 * @throws StemworkError `STORE_UNAVAILABLE` (not retryable) after `maxMs`; the signal's reason; other errors of `work`
 * at once.
 */
export async function throughOutage<Result>(work: () => Promise<Result>, options: OutageOptions): Promise<Result> {
  const { signal, maxMs, onFailure } = options
  let startedAt: number | undefined
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMs * 2, longestWaitMs)) {
    signal.throwIfAborted()
    try {
      return await work()
    } catch (error) {
      startedAt ??= performance.now()
      const leftMs = startedAt + maxMs - performance.now()
      if (!isOutage(error) || signal.aborted) throw error
      if (leftMs <= 0) throw awayTooLong(maxMs, error)
      onFailure(error)
      await delay(Math.min(waitMs, leftMs), undefined, { signal })
    }
  }
}

function isOutage(error: unknown): boolean {
  return StemworkError.is(error) && error.code === 'STORE_UNAVAILABLE' && error.retryable
}

function awayTooLong(maxMs: number, cause: unknown): StemworkError {
  return storeUnavailable(
    `The blob store was unavailable for more than ${Math.round(maxMs / 1000)} s (\`dispatch.storageOutageMs\`). ` +
      'Check the cause and the server.',
    { cause },
  )
}
