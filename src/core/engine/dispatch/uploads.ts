import { isTerminal, type JobRecord } from '../job/job.js'
import type { BlobStore } from '../ports/blob-store.js'
import type { JobStore } from '../ports/job-store.js'

/** Removes the uploaded inputs of an ended or deleted job, except those that another job still waits for. */
export async function releaseUploads(job: JobRecord, jobs: JobStore, blobs: BlobStore): Promise<void> {
  if (!isTerminal(job) && !job.deleted) return
  for (const key of Object.values(job.uploads)) {
    if (!(await isUploadInUse(key, jobs))) await blobs.delete(key)
  }
}

export async function isUploadInUse(key: string, jobs: JobStore): Promise<boolean> {
  return (await jobs.count({ uploadKey: key, statuses: ['QUEUED', 'STARTED'] })) > 0
}
