import type { JobRecord } from '../job/job.js'
import type { BlobStore } from '../ports/blob-store.js'
import type { JobStore } from '../ports/job-store.js'

/**
 * Removes the uploaded inputs of a deleted job, except those that another job still waits for. The end of a job leaves them to
 * retention: a second job may be on its way from the same upload, and while a file is there its ticket takes no other.
 */
export async function removeUploads(job: JobRecord, jobs: JobStore, blobs: BlobStore): Promise<void> {
  for (const key of Object.values(job.uploads)) {
    if (!(await isUploadInUse(key, jobs))) await blobs.delete(key)
  }
}

export async function isUploadInUse(key: string, jobs: JobStore): Promise<boolean> {
  return (await jobs.count({ uploadKey: key, statuses: ['QUEUED', 'STARTED'] }, { max: 1 })) > 0
}
