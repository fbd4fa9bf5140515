import { StemworkError } from '../errors.js'

/** The runs of one runner: each ends with its own signal, and all of them when the runner closes. */
export class RunGroup {
  readonly #endings = new Set<AbortController>()
  #closed = false

  get size(): number {
    return this.#endings.size
  }

  /** @throws StemworkError `SHUTTING_DOWN` after `close`; the signal's reason if it has fired */
  async run<Result>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    if (this.#closed) throw shuttingDown()
    signal.throwIfAborted()
    const ending = new AbortController()
    const onAbort = () => ending.abort(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    this.#endings.add(ending)
    try {
      return await work(ending.signal)
    } finally {
      this.#endings.delete(ending)
      signal.removeEventListener('abort', onAbort)
    }
  }

  close(): void {
    this.#closed = true
    for (const ending of this.#endings) ending.abort(shuttingDown())
  }
}

function shuttingDown(): StemworkError {
  const message = 'The runner is closed or closing. Submit the job again once the service has restarted.'
  return new StemworkError('SHUTTING_DOWN', message, { retryable: true })
}
