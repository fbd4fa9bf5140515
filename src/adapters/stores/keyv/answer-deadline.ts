import { StemworkError } from '../../../core/engine/errors.js'

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
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        deadline.#passed = true
        reject(deadline.#error())
      }, timeoutMs)
    })
    const working = work(deadline)
    // Once the caller has its answer, nobody can receive a later failure.
    working.catch(() => {})
    try {
      return await Promise.race([working, timeout])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Throws once the caller knows that the store is down: what it gave up on must not happen later. */
  check(): void {
    if (this.#passed) throw this.#error()
  }

  #error(): StemworkError {
    return new StemworkError(
      'STORE_UNAVAILABLE',
      `The Keyv store did not answer within ${this.#timeoutMs} ms. Check that its backend runs and can be reached, ` +
        'then try again.',
      { retryable: true },
    )
  }
}
