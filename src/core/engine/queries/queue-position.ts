import type { JobStore } from '../ports/job-store.js'

/** Highest position that is counted. */
const mostAhead = 1000

/** See `JobEngine.queuePosition`. */
export async function positionOf(jobs: JobStore, id: string): Promise<number | undefined> {
  const ahead = await jobs.ahead(id, { max: mostAhead })
  return ahead === undefined ? undefined : ahead + 1
}
