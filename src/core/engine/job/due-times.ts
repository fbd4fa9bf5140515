import { earliestPending } from './deliveries.js'
import { isTerminal, type JobRecord } from './job.js'

/**
 * The times that a store indexes, each in its own column or key; `null` for a job that is not due for the action. A job
 * is due when the time is not later than the store's clock. Deleted jobs are due only for their removal.
 */

/** When a queued job may be claimed. */
export function claimableFrom({ notBefore, dueAt }: Pick<JobRecord, 'notBefore' | 'dueAt'>): number {
  return Math.max(notBefore, dueAt ?? 0)
}

/** The time since (or from) which a queued job waits for a worker; null for other jobs. */
export function waitingSince(
  job: Pick<JobRecord, 'deleted' | 'status' | 'createdAt' | 'notBefore' | 'dueAt'>,
): number | null {
  if (job.deleted || job.status !== 'QUEUED') return null
  // A due time is later than the creation, unless the clock was set back in between.
  return job.dueAt === null ? Math.max(job.createdAt, job.notBefore) : claimableFrom(job)
}

/** When a job is retried after a temporary failure; null if it does not wait for a retry. */
export function retryAt(job: Pick<JobRecord, 'status' | 'dueAt' | 'history'>): number | null {
  return job.status === 'QUEUED' && job.history.at(-1)?.outcome === 'requeued' ? job.dueAt : null
}

/** When another worker may take over a started job; null for others. */
export function lapsesAt(job: Pick<JobRecord, 'deleted' | 'status' | 'lease'>): number | null {
  if (job.deleted || job.status !== 'STARTED') return null
  return job.lease === null ? 0 : job.lease.until
}

/** Whether a started job with an expired lease need not run again: it was canceled, or its deadline has passed. */
export function isAbandoned(
  job: Pick<JobRecord, 'deleted' | 'status' | 'lease' | 'cancelRequested' | 'deadline'>,
  now: number,
): boolean {
  const lapsed = lapsesAt(job)
  if (lapsed === null || lapsed > now) return false
  return job.cancelRequested || (job.deadline !== null && job.deadline <= now)
}

/** When a queued job misses its deadline; null for other jobs and without a deadline. */
export function overdueAt(job: Pick<JobRecord, 'deleted' | 'status' | 'deadline'>): number | null {
  return job.deleted || job.status !== 'QUEUED' ? null : job.deadline
}

/** When retention removes the result files; null for jobs that have none (any more). */
export function removableAt(
  job: Pick<JobRecord, 'deleted' | 'status' | 'expired' | 'outputs' | 'expiresAt'>,
): number | null {
  return job.deleted || job.expired || job.outputs === null || !isTerminal(job) ? null : job.expiresAt
}

/** When the first pending webhook message is due. */
export function deliverableAt(job: Pick<JobRecord, 'deleted' | 'deliveries'>): number | null {
  return job.deleted ? null : (earliestPending(job)?.nextAttemptAt ?? null)
}
