import { errorLine } from '../../job/error-text.js'
import { jobError } from '../../job/failure.js'
import type { JobRecord } from '../../job/job.js'
import type { Logger } from '../../ports/logger.js'

export type AttemptLog = ReturnType<typeof attemptLog>

/** Writes log lines about an attempt, each with its job and token. */
export function attemptLog(logger: Logger, { id: jobId, token }: JobRecord) {
  return {
    warn: (message: string, error: unknown): void => logger.warn({ jobId, token, err: error }, message),

    /** Logs the end of the job. A client's error is one line; its stack is in the record's `failure`. */
    failed(error: unknown): void {
      const { code } = jobError(error)
      if (code === 'INTERNAL_ERROR') logger.error({ jobId, token, err: error }, 'The job failed.')
      else logger[code === 'CANCELED' ? 'info' : 'warn']({ jobId, token, why: errorLine(error) }, 'The job failed.')
    },
  }
}
