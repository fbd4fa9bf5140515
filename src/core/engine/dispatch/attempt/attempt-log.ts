import { errorLine } from '../../job/error-text.js'
import { jobError } from '../../job/failure.js'
import type { JobRecord } from '../../job/job.js'
import type { Logger } from '../../ports/logger.js'

/** The log lines of an attempt, each with its job and token. */
export class AttemptLog {
  readonly #logger: Logger
  readonly #fields: { jobId: string; token: number }

  constructor(logger: Logger, { id, token }: JobRecord) {
    this.#logger = logger
    this.#fields = { jobId: id, token }
  }

  warn(message: string, error: unknown): void {
    this.#logger.warn({ ...this.#fields, err: error }, message)
  }

  /** A client's error is one line without a stack, which is in the record's `failure`. */
  failed(error: unknown): void {
    const { code } = jobError(error)
    if (code === 'INTERNAL_ERROR') this.#logger.error({ ...this.#fields, err: error }, 'The job failed.')
    else
      this.#logger[code === 'CANCELED' ? 'info' : 'warn']({ ...this.#fields, why: errorLine(error) }, 'The job failed.')
  }
}
