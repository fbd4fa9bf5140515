import { StemworkError } from './errors.js'
import type { JobRecord, JobStatus } from './job/job.js'
import type { JobPage, JobQuery } from './ports/job-store.js'

export type BulkAction = 'cancel' | 'retry' | 'delete'

/** What one call has done. */
export interface BulkReport {
  /** Jobs to which it was done. */
  done: number
  /** Jobs to which it could not be done, with the reason; those that were gone or had ended meanwhile are left out. */
  refused: { id: string; code: string; message: string }[]
  /** Where the next call goes on (`after`); absent when all were seen. */
  next?: NonNullable<JobPage['after']>
}

/** Jobs to which it can be done. */
const statusesOf: Record<BulkAction, readonly JobStatus[]> = {
  cancel: ['QUEUED', 'STARTED'],
  retry: ['FAILED'],
  delete: ['QUEUED', 'STARTED', 'SUCCEEDED', 'FAILED'],
}
/** Those that say that there is no room: further jobs would be refused, too. */
const endingCodes: readonly string[] = ['QUEUE_FULL', 'QUOTA_EXCEEDED', 'DRAINING', 'SHUTTING_DOWN']
const parallel = 8

/** Of the wanted statuses, those of jobs to which it can be done. */
export function possibleStatuses(action: BulkAction, wanted: readonly JobStatus[] | undefined): JobStatus[] {
  return statusesOf[action].filter((status) => wanted?.includes(status) ?? true)
}

/** Whether it stopped because further jobs would be refused as well. Its `next` is then for later. */
export function hasNoRoom({ refused }: BulkReport): boolean {
  return refused.some(({ code }) => endingCodes.includes(code))
}

/** Does it to the jobs that match, newest first, up to `limit` of them. Where there is no room for more, it stops: `next` is there then. */
export async function bulk(
  action: BulkAction,
  { statuses, ...query }: JobQuery,
  { limit, after }: { limit: number; after?: JobPage['after'] },
  { list, act }: { list(page: JobPage): Promise<JobRecord[]>; act(job: JobRecord): Promise<JobRecord | undefined> },
): Promise<BulkReport> {
  const found = await list({ ...query, statuses: possibleStatuses(action, statuses), limit: limit + 1, after })
  const jobs = found.slice(0, limit)
  const report: BulkReport = { done: 0, refused: [] }
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
    if (hasNoRoom(report)) return { ...report, next: last ? placeOf(last) : (after ?? beforeAll) }
    last = some.at(-1)
  }
  return found.length > limit && last ? { ...report, next: placeOf(last) } : report
}

/** Before the newest job. */
const beforeAll = { createdAt: Number.MAX_SAFE_INTEGER, id: '' }

function placeOf({ createdAt, id }: JobRecord): NonNullable<JobPage['after']> {
  return { createdAt, id }
}
