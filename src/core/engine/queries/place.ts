import type { JobStore } from '../ports/job-store.js'

/** Highest place in the queue that is counted. */
const mostAhead = 1000

/** See `JobEngine.place`. */
export async function placeOf(jobs: JobStore, id: string): Promise<number | undefined> {
  const ahead = await jobs.ahead(id, { max: mostAhead })
  return ahead === undefined ? undefined : ahead + 1
}
