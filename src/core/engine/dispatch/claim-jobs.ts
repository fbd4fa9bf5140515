import type { JobRecord } from '../job/job.js'
import type { ClaimRequest } from '../job/transitions.js'
import type { Claimable, JobStore } from '../ports/job-store.js'

/** Claims at most `max` jobs: at once, or one by one from a store without `claimSeveral`. */
export async function claimJobs(
  jobs: JobStore,
  request: ClaimRequest & Omit<Claimable, 'id'>,
  max: number,
): Promise<JobRecord[]> {
  if (jobs.claimSeveral) return await jobs.claimSeveral(request, { max })
  const claimed: JobRecord[] = []
  try {
    while (claimed.length < max) {
      const job = await jobs.claim(request)
      if (!job) break
      claimed.push(job)
    }
  } catch (error) {
    // Jobs that were granted before the failure must run.
    if (claimed.length === 0) throw error
  }
  return claimed
}
