import { StemworkError } from '../errors.js'
import type { JobRecord, JobStatus } from '../job/job.js'
import { rested, type Turn } from '../limits/rested.js'
import { type FoundJobs, pageAfter, readPage, searchJobs } from '../queries/job-search.js'
import type { JobPage, JobQuery } from '../ports/job-store.js'

export type BulkAction = 'cancel' | 'retry' | 'delete'

/** Result of one call. */
export interface BulkReport {
  /** Jobs that were changed. */
  done: number
  /** Jobs that could not be changed, with the reason; jobs that were deleted or ended meanwhile are left out. */
  refused: { id: string; code: string; message: string }[]
  /** Whether the call stopped because there is no room for more jobs. Continue from `next` later. */
  isFull: boolean
  /** Where the next call continues (`after`); absent at the end. */
  next?: NonNullable<JobPage['after']>
}

/** Selects some of the matching jobs. */
export interface BulkOptions {
  /** Most jobs of one call. Default: 100. */
  limit?: number
  /** `next` of the previous call. */
  after?: JobPage['after']
  /** A further condition, without an index. One call then checks up to 2,000 jobs. */
  where?: (job: JobRecord) => boolean
  /** Runs each read of a few jobs. Default: with pauses in between, for other work. */
  turn?: Turn
}

/** Jobs changed at a time: this many of the largest take a few milliseconds. */
export const changedRows = 4
/** Statuses of jobs that can be changed. */
const statusesOf: Record<BulkAction, readonly JobStatus[]> = {
  cancel: ['QUEUED', 'STARTED'],
  retry: ['FAILED'],
  delete: ['QUEUED', 'STARTED', 'SUCCEEDED', 'FAILED'],
}
/** Errors after which further jobs would be refused, too. */
const endingCodes: readonly string[] = ['QUEUE_FULL', 'QUOTA_EXCEEDED', 'DRAINING', 'SHUTTING_DOWN']

/**
 * Changes up to `limit` matching jobs, newest first, a few at a time. Stops when there is no room for more, and then
 * returns `next`.
 */
export async function bulk(
  action: BulkAction,
  { statuses, ...query }: JobQuery,
  options: BulkOptions & { limit: number },
  { list, act }: { list(page: JobPage): Promise<JobRecord[]>; act(job: JobRecord): Promise<JobRecord | undefined> },
): Promise<BulkReport> {
  const possible = statusesOf[action].filter((status) => statuses?.includes(status) ?? true)
  const report: BulkReport = { done: 0, refused: [], isFull: false }
  let reached = options.after
  for await (const { jobs, next } of slices({ ...query, statuses: possible }, options, list)) {
    await rested(() => change(jobs, act, report))
    if (report.refused.some(({ code }) => endingCodes.includes(code)))
      return { ...report, isFull: true, next: reached ?? beforeAll }
    reached = next
  }
  return reached === undefined ? report : { ...report, next: reached }
}

/** Yields the matching jobs, a few at a time, with the position at which the search continues. */
async function* slices(
  query: JobQuery,
  { limit, after, where, turn = rested }: BulkOptions & { limit: number },
  list: (page: JobPage) => Promise<JobRecord[]>,
): AsyncGenerator<Omit<FoundJobs, 'looked'>, void, undefined> {
  if (where) {
    const { jobs, next } = await searchJobs({ ...query, limit, after }, where, list)
    for (let start = 0; start === 0 || start < jobs.length; start += changedRows) {
      const some = jobs.slice(start, start + changedRows)
      yield { jobs: some, next: start + changedRows < jobs.length ? pageAfter(some.at(-1)) : next }
    }
    return
  }
  for (let left = limit, from = after; left > 0;) {
    const page = { ...query, limit: Math.min(left, changedRows), after: from }
    const { jobs, next } = await turn(() => readPage(page, list))
    yield { jobs, next }
    if (!next) return
    left -= jobs.length
    from = next
  }
}

async function change(
  jobs: readonly JobRecord[],
  act: (job: JobRecord) => Promise<JobRecord | undefined>,
  report: BulkReport,
): Promise<void> {
  const outcomes = await Promise.allSettled(jobs.map((job) => act(job)))
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.status === 'fulfilled') report.done += Number(outcome.value !== undefined)
    else {
      const error: unknown = outcome.reason
      if (!StemworkError.is(error) || error.code === 'STORE_UNAVAILABLE') throw error
      report.refused.push({ id: jobs[index]?.id ?? '', code: error.code, message: error.message })
    }
  }
}

/** The position before the newest job. */
const beforeAll = { createdAt: Number.MAX_SAFE_INTEGER, id: '' }
