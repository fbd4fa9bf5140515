import { StemworkError } from '../../../core/engine/errors.js'

/** Ends the waiting of a caller, never the work: a write that was sent may arrive at any later time. */
export class AnswerDeadline {
  readonly #timeoutMs: number
  #passed = false

  private constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /**
   * What `work` returns, or `STORE_UNAVAILABLE` after `timeoutMs`. The work goes on then, with the locks that it holds, until
   * `check` stops it; so nothing else touches a record of which a write is still on its way.
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
    // Once the caller has its answer, a later failure has nobody to go to.
    working.catch(() => {})
    try {
      return await Promise.race([working, timeout])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Throws once the caller knows that the store is away: what it gave up must not happen afterwards. */
  check(): void {
    if (this.#passed) throw this.#error()
  }

  #error(): StemworkError {
    return new StemworkError(
      'STORE_UNAVAILABLE',
      `The Keyv store did not answer within ${this.#timeoutMs} ms. Check that its backend runs and can be reached, then try again.`,
      { retryable: true },
    )
  }
}
