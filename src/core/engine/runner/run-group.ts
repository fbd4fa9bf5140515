import { shuttingDown } from '../errors.js'

/** The runs of one runner; closing the group aborts them all. */
export class RunGroup {
  readonly #runs = new Set<AbortController>()
  #closed = false

  get size(): number {
    return this.#runs.size
  }

  /**
   * Does the work with a signal that fires when the caller's does, or when the group closes.
   *
   * @throws StemworkError `SHUTTING_DOWN` once the group is closed; the caller's reason if its signal has fired
   */
  async run<Result>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    if (this.#closed) throw shuttingDown()
    signal.throwIfAborted()
    const controller = new AbortController()
    const follow = () => controller.abort(signal.reason)
    signal.addEventListener('abort', follow, { once: true })
    this.#runs.add(controller)
    try {
      return await work(controller.signal)
    } finally {
      signal.removeEventListener('abort', follow)
      this.#runs.delete(controller)
    }
  }

  close(): void {
    this.#closed = true
    for (const run of this.#runs) run.abort(shuttingDown())
  }
}
