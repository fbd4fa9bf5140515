import type { JobRecord } from '../../job/job.js'
import { keepsInputs } from '../../job/retry.js'
import type { BlobStore } from '../../ports/blob-store.js'
import type { JobStore } from '../../ports/job-store.js'
import type { StoreClock } from '../../store-clock.js'

interface UploadPorts {
  jobs: JobStore
  clock: StoreClock
}

/**
 * Removes the uploaded inputs of a deleted job, except those that another job needs. When a job ends, retention removes
 * them: a second job may use the same upload, and a ticket accepts no second file while the first exists.
 */
export async function removeUploads(job: JobRecord, ports: UploadPorts & { blobs: BlobStore }): Promise<void> {
  for (const key of Object.values(job.uploads)) {
    if (!(await isUploadInUse(key, ports))) await ports.blobs.delete(key)
  }
}

/** Failed jobs per upload to check; an upload with more of them is kept. */
const mostFailed = 100

/** Whether a job waits for the upload, uses it, or may be retried with it. */
export async function isUploadInUse(key: string, { jobs, clock }: UploadPorts): Promise<boolean> {
  if ((await jobs.count({ uploadKey: key, statuses: ['QUEUED', 'STARTED'] }, { max: 1 })) > 0) return true
  const failed = await jobs.list({ uploadKey: key, statuses: ['FAILED'], limit: mostFailed })
  if (failed.length === 0 || failed.length === mostFailed) return failed.length > 0
  const now = await clock.time()
  return failed.some((job) => keepsInputs(job, now))
}
