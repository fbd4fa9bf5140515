import { storeUnavailable } from '../../../core/engine/errors.js'
import { within } from '../../../core/engine/ports/within.js'

/** Ends a caller's wait, never the work: a write that was sent may arrive at any later time. */
export interface AnswerDeadline {
  /** Throws once the caller knows that the store is down: work that it gave up on must not happen later. */
  check(): void
}

/**
 * Returns the result of `work`, or fails with `STORE_UNAVAILABLE` after `timeoutMs`. The work then continues, holding
 * its locks, until `check` stops it; so nothing else touches a record whose write is still in flight.
 */
export async function answerWithin<Result>(
  timeoutMs: number,
  work: (deadline: AnswerDeadline) => Promise<Result>,
): Promise<Result> {
  let isPassed = false
  const late = () =>
    storeUnavailable(
      `The Keyv store did not answer within ${timeoutMs} ms. Check that its backend runs and can be reached, ` +
        'then try again.',
      { retryable: true },
    )
  const check = () => {
    if (isPassed) throw late()
  }
  return await within(work({ check }), timeoutMs, () => {
    isPassed = true
    return late()
  })
}
