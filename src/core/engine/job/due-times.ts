import { isTerminal, type JobRecord } from './job.js'

/**
 * The times that a store indexes: one column or key each, `null` where the job has no business there. A job is due when its
 * time is not later than the store's now; deleted jobs are due for nothing but their removal.
 */

/** Since when (or from when on) the job waits for a worker. Ordered by this, the first has waited longest. */
export function claimableAt(
  job: Pick<JobRecord, 'deleted' | 'status' | 'createdAt' | 'notBefore' | 'lease'>,
): number | null {
  if (job.deleted || isTerminal(job)) return null
  if (job.status === 'QUEUED') return Math.max(job.createdAt, job.notBefore)
  return job.lease === null ? 0 : job.lease.until
}

/** When retention removes the result files; null for jobs that have none (any more). */
export function removableAt(
  job: Pick<JobRecord, 'deleted' | 'status' | 'expired' | 'outputs' | 'expiresAt'>,
): number | null {
  return job.deleted || job.expired || job.outputs === null || !isTerminal(job) ? null : job.expiresAt
}

/** When the first of the outbox's waiting messages is tried next. */
export function deliverableAt(job: Pick<JobRecord, 'deleted' | 'deliveries'>): number | null {
  if (job.deleted) return null
  let first: number | null = null
  for (const { outcome, nextAttemptAt } of job.deliveries) {
    if (outcome === 'pending' && nextAttemptAt !== null && (first === null || nextAttemptAt < first))
      first = nextAttemptAt
  }
  return first
}
