import { StemworkError, storeUnavailable } from '../../../core/engine/errors.js'
import { within } from '../../../core/engine/ports/within.js'

/** Ends a caller's wait, never the work: a write that was sent may arrive at any later time. */
export class AnswerDeadline {
  readonly #timeoutMs: number
  #passed = false

  private constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /**
   * What `work` returns, or `STORE_UNAVAILABLE` after `timeoutMs`. The work then continues, holding its locks, until
   * `check` stops it; so nothing else touches a record whose write is still in flight.
   */
  static async run<Result>(timeoutMs: number, work: (deadline: AnswerDeadline) => Promise<Result>): Promise<Result> {
    const deadline = new AnswerDeadline(timeoutMs)
    return await within(work(deadline), timeoutMs, () => {
      deadline.#passed = true
      return deadline.#error()
    })
  }

  /** Throws once the caller knows that the store is down: what it gave up on must not happen later. */
  check(): void {
    if (this.#passed) throw this.#error()
  }

  #error(): StemworkError {
    return storeUnavailable(
      `The Keyv store did not answer within ${this.#timeoutMs} ms. Check that its backend runs and can be reached, ` +
        'then try again.',
      { retryable: true },
    )
  }
}
