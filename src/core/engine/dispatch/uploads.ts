import type { JobRecord } from '../job/job.js'
import { keepsInputs } from '../job/retry.js'
import type { BlobStore } from '../ports/blob-store.js'
import type { JobStore } from '../ports/job-store.js'

/**
 * Removes the uploaded inputs of a deleted job, except those that another job needs. The end of a job leaves them to
 * retention: a second job may be on its way from the same upload, and while a file is there its ticket takes no other.
 */
export async function removeUploads(job: JobRecord, jobs: JobStore, blobs: BlobStore): Promise<void> {
  for (const key of Object.values(job.uploads)) {
    if (!(await isUploadInUse(key, jobs))) await blobs.delete(key)
  }
}

/** Failed jobs of one upload that are looked at; one with more of them is kept. */
const mostFailed = 100

/** Whether a job waits for the upload, works with it, or may be run again with it. */
export async function isUploadInUse(key: string, jobs: JobStore): Promise<boolean> {
  if ((await jobs.count({ uploadKey: key, statuses: ['QUEUED', 'STARTED'] }, { max: 1 })) > 0) return true
  const failed = await jobs.list({ uploadKey: key, statuses: ['FAILED'], limit: mostFailed })
  return failed.length === mostFailed || failed.some((job) => keepsInputs(job, Date.now()))
}
