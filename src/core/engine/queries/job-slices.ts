import { performance } from 'node:perf_hooks'
import { setImmediate } from 'node:timers/promises'
import type { JobRecord } from '../job/job.js'
import { rested, type Turn } from '../limits/rested.js'
import type { JobPage } from '../ports/job-store.js'

/** Records read at a time. Stores parse them on the event loop: this many of the largest take a few milliseconds. */
export const sliceRows = 8

/** Until the event loop was busy for this long, slices follow each other: a pause would only waste time. */
const shortMs = 1

/** Passes the jobs of a page to `each` in slices, between which other work runs. */
export async function readSlices(
  { limit, ...page }: JobPage,
  list: (page: JobPage) => Promise<JobRecord[]>,
  each: (jobs: JobRecord[]) => Promise<void> | void,
  turn: Turn = rested,
): Promise<void> {
  let { after, offset } = page
  let left = limit
  while (left > 0) {
    await turn(async (spent) => {
      const before = performance.eventLoopUtilization()
      let spentMs = 0
      while (left > 0 && performance.eventLoopUtilization(before).active < shortMs) {
        if (spentMs > 0) await setImmediate()
        const wanted = Math.min(left, sliceRows)
        const jobs = await list({ ...page, limit: wanted, after, offset })
        const startedAt = performance.now()
        await each(jobs)
        // Doubled for parsing the rows. The search of a remote store does not block the event loop.
        spentMs += 2 * (performance.now() - startedAt)
        const last = jobs.at(-1)
        left = last && jobs.length === wanted ? left - wanted : 0
        after = last && { createdAt: last.createdAt, id: last.id }
        offset = undefined
      }
      spent?.(spentMs)
    })
  }
}
