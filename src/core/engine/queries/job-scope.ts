import type { JobRecord } from '../job/job.js'
import type { JobStore } from '../ports/job-store.js'

/** Restricts a call to one application's jobs; all other jobs seem not to exist. */
export interface JobScope {
  app?: string
}

export async function jobInScope(jobs: JobStore, id: string, { app }: JobScope): Promise<JobRecord | undefined> {
  const job = await jobs.get(id)
  return job && (app === undefined || job.app === app) ? job : undefined
}
