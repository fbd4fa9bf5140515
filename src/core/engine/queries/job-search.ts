import type { JobRecord } from '../job/job.js'
import { rested } from '../limits/rested.js'
import type { JobPage } from '../ports/job-store.js'
import { readSlices } from './job-slices.js'

/** Most jobs that one search checks for a condition without an index. */
const mostLooked = 2_000
/** Jobs that are read and checked before other work gets a turn. */
const readSize = 10

/** Result of a search. */
export interface FoundJobs {
  /** Newest first. */
  jobs: JobRecord[]
  /** Where the next search continues (`after`); absent when all jobs were checked. */
  next?: NonNullable<JobPage['after']>
  /** Number of jobs that were read. */
  looked: number
}

/** Reads a page at once. */
export async function readPage(
  { limit, ...page }: JobPage,
  list: (page: JobPage) => Promise<JobRecord[]>,
): Promise<FoundJobs> {
  return pageOf(await list({ ...page, limit: limit + 1 }), limit)
}

/**
 * Finds up to `limit` jobs that also meet `where`; fewer, with `next`, after 2,000 were checked. Without `where`, reads
 * a page. Jobs are read a few at a time, and other work runs in between.
 */
export async function searchJobs(
  { limit, after, ...query }: JobPage,
  where: ((job: JobRecord) => boolean) | undefined,
  list: (page: JobPage) => Promise<JobRecord[]>,
): Promise<FoundJobs> {
  if (!where) {
    const read: JobRecord[] = []
    await readSlices({ ...query, limit: limit + 1, after }, list, (some) => void read.push(...some))
    return pageOf(read, limit)
  }
  const jobs: JobRecord[] = []
  let [looked, from] = [0, after]
  while (looked < mostLooked) {
    const page = { ...query, limit: readSize, after: from }
    const read = await rested(() => list(page))
    for (const job of read) {
      looked++
      if (where(job)) jobs.push(job)
      if (jobs.length === limit) return { jobs, next: pageAfter(job), looked }
    }
    if (read.length < readSize) return { jobs, looked }
    from = pageAfter(read.at(-1))
  }
  return { jobs, next: from, looked }
}

/** @param read the jobs of the page, and one more if there is any */
function pageOf(read: JobRecord[], limit: number): FoundJobs {
  const jobs = read.slice(0, limit)
  return { jobs, next: read.length > limit ? pageAfter(jobs.at(-1)) : undefined, looked: jobs.length }
}

export function pageAfter(job: JobRecord | undefined): JobPage['after'] {
  return job && { createdAt: job.createdAt, id: job.id }
}
