import { errorLine } from '../../job/error-text.js'
import { jobError } from '../../job/failure.js'
import type { JobRecord } from '../../job/job.js'
import type { Logger } from '../../ports/logger.js'
import type { StepState } from '../../ports/runner.js'

export type AttemptLog = ReturnType<typeof attemptLog>

/** Writes log lines about an attempt, each with its job, token and the step that has failed, if one has. */
export function attemptLog(logger: Logger, { id: jobId, token }: JobRecord) {
  let about: { jobId: string; token: number; step?: string } = { jobId, token }
  return {
    warn: (message: string, error: unknown): void => logger.warn({ ...about, err: error }, message),

    /** Call when a try of a step has ended. */
    noteStep({ name, state }: Pick<StepState, 'name' | 'state'>): void {
      if (state === 'failed') about = { ...about, step: name }
      else if (about.step === name) about = { jobId, token }
    },

    /** Logs the end of the job. A client's error is one line; its stack is in the record's `failure`. */
    failed(error: unknown): void {
      const { code } = jobError(error)
      if (code === 'INTERNAL_ERROR') logger.error({ ...about, err: error }, 'The job failed.')
      else logger[code === 'CANCELED' ? 'info' : 'warn']({ ...about, why: errorLine(error) }, 'The job failed.')
    },
  }
}
