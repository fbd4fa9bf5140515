import { StemworkError } from '../errors.js'
import type { Run } from '../ports/runner.js'

/** The runs of one runner: all of them end when it closes. */
export class RunGroup {
  readonly #runs = new Set<Run>()
  #closed = false

  get size(): number {
    return this.#runs.size
  }

  /** Starts a run; after `close`, one that has failed with `SHUTTING_DOWN`. */
  start(begin: () => Run): Run {
    if (this.#closed) return { result: Promise.reject(shuttingDown()), abort: () => {} }
    const run = begin()
    this.#runs.add(run)
    const forget = () => this.#runs.delete(run)
    run.result.then(forget, forget)
    return run
  }

  close(): void {
    this.#closed = true
    for (const run of this.#runs) run.abort(shuttingDown())
  }
}

function shuttingDown(): StemworkError {
  const message = 'The runner is closed or closing. Submit the job again once the service has restarted.'
  return new StemworkError('SHUTTING_DOWN', message, { retryable: true })
}
