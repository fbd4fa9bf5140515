import type { JobStore } from '../../../core/engine/ports/job-store.js'

/** How jobs enter the queue a first time. */
export type JobCreates = Pick<JobStore, 'create' | 'createAll' | 'findByIdempotencyKey' | 'usage'>
/** How jobs enter the queue, a first time or again, and change. */
export type JobEntries = JobCreates & Pick<JobStore, 'apply'>
/** Who is next. */
export type JobClaims = Pick<
  JobStore,
  'claim' | 'claimSeveral' | 'ahead' | 'queue' | 'backlog' | 'rules' | 'changeRule'
>
export type JobLists = Pick<JobStore, 'get' | 'list' | 'count' | 'resultBytes' | 'recordBytes'>
export type JobSweep = Pick<JobStore, 'due' | 'deliverable' | 'purge' | 'unreadable' | 'beginFilePass'>
