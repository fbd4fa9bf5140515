import type { AdmissionLimits } from './admission.js'
import type { JobRecord } from '../job/job.js'
import { inputExpired, notFailed } from '../job/retry.js'
import type { BlobStore } from '../ports/blob-store.js'
import type { JobStore } from '../ports/job-store.js'

/**
 * Queues a FAILED job again. `undefined`: it is gone.
 *
 * @throws StemworkError `NOT_FAILED`, `INPUT_EXPIRED`, `QUEUE_FULL`, `QUOTA_EXCEEDED`.
 */
export async function retryJob(
  job: JobRecord,
  limits: AdmissionLimits,
  { jobs, blobs }: { jobs: JobStore; blobs: BlobStore },
): Promise<JobRecord | undefined> {
  if (job.status === 'FAILED') {
    // Uploads should exist until they expire; checked anyway, so that no job is queued that fails at once.
    for (const key of Object.values(job.uploads)) if (!(await blobs.stat(key))) throw inputExpired(job)
  }
  const queued = await jobs.apply(job.id, { kind: 'retry', ...limits })
  if (queued) return queued
  const now = await jobs.get(job.id)
  if (now) throw notFailed(now)
  return undefined
}
