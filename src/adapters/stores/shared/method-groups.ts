import type { JobStore } from '../../../core/engine/ports/job-store.js'

/** Methods by which jobs enter the queue for the first time. */
export type JobCreates = Pick<JobStore, 'create' | 'createAll' | 'findByIdempotencyKey' | 'usage'>
/** Methods by which jobs enter the queue, for the first time or again, and change. */
export type JobEntries = JobCreates & Pick<JobStore, 'apply'>
/** Methods for claims, and for the order of waiting jobs. */
export type JobClaims = Pick<
  JobStore,
  'claim' | 'claimSeveral' | 'ahead' | 'queue' | 'backlog' | 'rules' | 'changeRule'
>
export type JobLists = Pick<JobStore, 'get' | 'list' | 'count' | 'resultBytes' | 'recordBytes'>
export type JobSweep = Pick<JobStore, 'due' | 'deliverable' | 'purge' | 'unreadable' | 'beginFilePass'>
