import { StemworkError } from '../errors.js'
import type { JobRecord, JobStatus } from '../job/job.js'
import { pageAfter, searchJobs } from '../queries/job-search.js'
import type { JobPage, JobQuery } from '../ports/job-store.js'

export type BulkAction = 'cancel' | 'retry' | 'delete'

/** What one call did. */
export interface BulkReport {
  /** Jobs that were changed. */
  done: number
  /** Jobs that could not be changed, with the reason; jobs that were deleted or ended meanwhile are left out. */
  refused: { id: string; code: string; message: string }[]
  /** It stopped because there is no room for more jobs. Continue from `next` later. */
  isFull: boolean
  /** Where the next call continues (`after`); absent at the end. */
  next?: NonNullable<JobPage['after']>
}

/** Which of the matching jobs. */
export interface BulkOptions {
  /** Most jobs of one call. Default: 100. */
  limit?: number
  /** `next` of the call before. */
  after?: JobPage['after']
  /** A further condition that no index has. One call then checks up to 2,000 jobs. */
  where?: (job: JobRecord) => boolean
}

/** Statuses of jobs that can be changed. */
const statusesOf: Record<BulkAction, readonly JobStatus[]> = {
  cancel: ['QUEUED', 'STARTED'],
  retry: ['FAILED'],
  delete: ['QUEUED', 'STARTED', 'SUCCEEDED', 'FAILED'],
}
/** Errors that mean there is no room: further jobs would be refused, too. */
const endingCodes: readonly string[] = ['QUEUE_FULL', 'QUOTA_EXCEEDED', 'DRAINING', 'SHUTTING_DOWN']
const parallel = 8

/**
 * Changes the matching jobs, newest first, up to `limit` of them. Stops when there is no room for more, and then
 * returns `next`.
 */
export async function bulk(
  action: BulkAction,
  { statuses, ...query }: JobQuery,
  { limit, after, where }: BulkOptions & { limit: number },
  { list, act }: { list(page: JobPage): Promise<JobRecord[]>; act(job: JobRecord): Promise<JobRecord | undefined> },
): Promise<BulkReport> {
  const possible = statusesOf[action].filter((status) => statuses?.includes(status) ?? true)
  const { jobs, next } = await searchJobs({ ...query, statuses: possible, limit, after }, where, list)
  const report: BulkReport = { done: 0, refused: [], isFull: false }
  let last: JobRecord | undefined
  for (let start = 0; start < jobs.length; start += parallel) {
    const some = jobs.slice(start, start + parallel)
    const outcomes = await Promise.allSettled(some.map((job) => act(job)))
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') report.done += Number(outcome.value !== undefined)
      else {
        const error: unknown = outcome.reason
        if (!StemworkError.is(error) || error.code === 'STORE_UNAVAILABLE') throw error
        report.refused.push({ id: some[index]?.id ?? '', code: error.code, message: error.message })
      }
    }
    if (report.refused.some(({ code }) => endingCodes.includes(code)))
      return { ...report, isFull: true, next: pageAfter(last) ?? after ?? beforeAll }
    last = some.at(-1)
  }
  return next ? { ...report, next } : report
}

/** Before the newest job. */
const beforeAll = { createdAt: Number.MAX_SAFE_INTEGER, id: '' }
