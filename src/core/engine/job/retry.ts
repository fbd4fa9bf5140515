import { StemworkError } from '../errors.js'
import type { JobRecord } from './job.js'

/**
 * Whether the files for a retry of this job are still kept, until `expiresAt`: uploads, and the kept work and downloads
 * of its attempts.
 */
export function keepsInputs(job: Pick<JobRecord, 'status' | 'expiresAt'>, now: number): boolean {
  return job.status === 'FAILED' && job.expiresAt !== null && job.expiresAt > now
}

/** Whether the work of its attempts is still kept: only if the service failed or an attempt took too long. */
export function keepsWork(job: Pick<JobRecord, 'status' | 'expiresAt' | 'error'>, now: number): boolean {
  return keepsInputs(job, now) && isWorthKeeping(job.error)
}

export function isWorthKeeping(error: JobRecord['error']): boolean {
  return error?.code === 'INTERNAL_ERROR' || (error?.code === 'TIMEOUT' && error.reason !== 'deadline')
}

/** The failed job, queued again. */
export function retried(job: JobRecord, now: number): JobRecord {
  return {
    ...job,
    status: 'QUEUED',
    progress: 0,
    error: null,
    settlement: null,
    completedAt: null,
    expiresAt: null,
    attempts: 0,
    lapses: 0,
    shutdownRequeues: 0,
    processorSeconds: 0,
    retries: job.retries + 1,
    steps: isWorthKeeping(job.error) ? job.steps : [],
    keptProgress: isWorthKeeping(job.error) ? job.keptProgress : 0,
    // The job has had its turn, so its wait starts now.
    dueAt: now,
    cancelRequested: false,
  }
}

/** The error for a job that cannot be retried. */
export function notFailed({ id, status, deadline }: Pick<JobRecord, 'id' | 'status' | 'deadline'>): StemworkError {
  const why =
    status === 'FAILED'
      ? `because its deadline, ${new Date(deadline ?? 0).toISOString()}, has passed. Submit it again with a later one`
      : `because it is ${status}: only a FAILED job can be. Submit a new job instead`
  return new StemworkError('NOT_FAILED', `The job ${id} is not run again, ${why}.`)
}

/** The error for a retry of a job whose uploaded input was removed. */
export function inputExpired({ id }: Pick<JobRecord, 'id'>): StemworkError {
  return new StemworkError(
    'INPUT_EXPIRED',
    `The uploaded input of the job ${id} has been removed. Inputs of failed jobs are kept until \`expiresAt\`. ` +
      'Upload the file again and submit a new job.',
  )
}
