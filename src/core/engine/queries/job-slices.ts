import type { JobRecord } from '../job/job.js'
import { rested, type Turn } from '../limits/rested.js'
import type { JobPage } from '../ports/job-store.js'

/** Records read at a time. Stores read them on the event loop: this many of the largest take a few milliseconds. */
export const sliceRows = 8

/** Hands the jobs of a page to `each` in slices, between which others are served. */
export async function readSlices(
  { limit, ...page }: JobPage,
  list: (page: JobPage) => Promise<JobRecord[]>,
  each: (jobs: JobRecord[]) => Promise<void> | void,
  turn: Turn = rested,
): Promise<void> {
  let { after, offset } = page
  for (let left = limit; left > 0;) {
    const wanted = Math.min(left, sliceRows)
    const jobs = await turn(async (spent) => {
      const found = await list({ ...page, limit: wanted, after, offset })
      const startedAt = performance.now()
      await each(found)
      // A store elsewhere leaves the event loop to others while it searches; then the rows are parsed.
      spent?.(2 * (performance.now() - startedAt))
      return found
    })
    const last = jobs.at(-1)
    if (!last || jobs.length < wanted) return
    left -= jobs.length
    after = { createdAt: last.createdAt, id: last.id }
    offset = undefined
  }
}
