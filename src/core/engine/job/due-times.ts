import { earliestPending } from './deliveries.js'
import { isTerminal, type JobRecord } from './job.js'

/**
 * The times that a store indexes: one column or key each, `null` for a job that is not due for it. A job is due when
 * its time is not later than the store's now; deleted jobs are due for nothing but their removal.
 */

/** When a queued job may be claimed. */
export function claimableFrom({ notBefore, dueAt }: Pick<JobRecord, 'notBefore' | 'dueAt'>): number {
  return Math.max(notBefore, dueAt ?? 0)
}

/** The time since (or from) which the job waits for a worker; null for jobs that are not queued. */
export function waitingSince(
  job: Pick<JobRecord, 'deleted' | 'status' | 'createdAt' | 'notBefore' | 'dueAt'>,
): number | null {
  if (job.deleted || job.status !== 'QUEUED') return null
  // A due time is later than the creation, unless the clock was set back in between.
  return job.dueAt === null ? Math.max(job.createdAt, job.notBefore) : claimableFrom(job)
}

/** When a job is retried after a temporary failure; null if that is not what it waits for. */
export function retryAt(job: Pick<JobRecord, 'status' | 'dueAt' | 'history'>): number | null {
  return job.status === 'QUEUED' && job.history.at(-1)?.outcome === 'requeued' ? job.dueAt : null
}

/** When another worker may take over a started job; null for others. */
export function lapsesAt(job: Pick<JobRecord, 'deleted' | 'status' | 'lease'>): number | null {
  if (job.deleted || job.status !== 'STARTED') return null
  return job.lease === null ? 0 : job.lease.until
}

/**
 * Whether a started job whose lease has expired need not be run again: it was canceled, or its deadline has passed.
 */
export function isAbandoned(
  job: Pick<JobRecord, 'deleted' | 'status' | 'lease' | 'cancelRequested' | 'deadline'>,
  now: number,
): boolean {
  const lapsed = lapsesAt(job)
  if (lapsed === null || lapsed > now) return false
  return job.cancelRequested || (job.deadline !== null && job.deadline <= now)
}

/** When a job that waits for a worker has missed its deadline; null for others. */
export function overdueAt(job: Pick<JobRecord, 'deleted' | 'status' | 'deadline'>): number | null {
  return job.deleted || job.status !== 'QUEUED' ? null : job.deadline
}

/** When retention removes the result files; null for jobs that have none (any more). */
export function removableAt(
  job: Pick<JobRecord, 'deleted' | 'status' | 'expired' | 'outputs' | 'expiresAt'>,
): number | null {
  return job.deleted || job.expired || job.outputs === null || !isTerminal(job) ? null : job.expiresAt
}

/** When the first waiting message of the outbox is due. */
export function deliverableAt(job: Pick<JobRecord, 'deleted' | 'deliveries'>): number | null {
  return job.deleted ? null : (earliestPending(job)?.nextAttemptAt ?? null)
}
