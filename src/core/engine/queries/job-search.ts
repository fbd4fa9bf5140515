import type { JobRecord } from '../job/job.js'
import type { JobPage } from '../ports/job-store.js'

/** Jobs that one search checks for a condition without an index. */
const mostLooked = 2_000
const readSize = 200

/** What a search found. */
export interface FoundJobs {
  /** Newest first. */
  jobs: JobRecord[]
  /** Where the next search continues (`after`); absent when all jobs were checked. */
  next?: NonNullable<JobPage['after']>
  /** Number of jobs that were read. */
  looked: number
}

/** Up to `limit` jobs that also meet `where`; fewer, with `next`, after 2,000 were checked. Without `where`, a page. */
export async function searchJobs(
  { limit, after, ...query }: JobPage,
  where: ((job: JobRecord) => boolean) | undefined,
  list: (page: JobPage) => Promise<JobRecord[]>,
): Promise<FoundJobs> {
  if (!where) {
    const read = await list({ ...query, limit: limit + 1, after })
    const jobs = read.slice(0, limit)
    return { jobs, next: read.length > limit ? pageAfter(jobs.at(-1)) : undefined, looked: jobs.length }
  }
  const jobs: JobRecord[] = []
  for (let looked = 0, from = after; ; looked += readSize) {
    const read = await list({ ...query, limit: readSize, after: from })
    for (const [index, job] of read.entries()) {
      if (where(job)) jobs.push(job)
      if (jobs.length === limit) return { jobs, next: pageAfter(job), looked: looked + index + 1 }
    }
    if (read.length < readSize) return { jobs, looked: looked + read.length }
    from = pageAfter(read.at(-1))
    if (looked + readSize >= mostLooked) return { jobs, next: from, looked: looked + readSize }
  }
}

export function pageAfter(job: JobRecord | undefined): JobPage['after'] {
  return job && { createdAt: job.createdAt, id: job.id }
}
