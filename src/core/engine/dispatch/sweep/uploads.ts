import { isOfTicket, resultsPrefix, usedTicketKey } from '../../job/blob-keys.js'
import type { JobRecord } from '../../job/job.js'
import { keepsInputs } from '../../job/retry.js'
import type { SharedParts } from '../../engine-parts.js'

/**
 * Removes the uploaded inputs of a deleted job, except uploads that another job needs. When a job just ends, retention
 * removes them: a second job may use them, and a ticket accepts no second file while the first exists. After a removal,
 * a marker file shows that the ticket was used while it may still be valid; retention removes the marker.
 */
export async function removeUploads(
  job: JobRecord,
  ports: Pick<SharedParts, 'jobs' | 'clock' | 'blobs' | 'options'>,
): Promise<void> {
  const { blobs, clock, options } = ports
  // An upload is older than its jobs.
  const mayHaveTicket = (await clock.time()) - job.createdAt <= options.retention.unusedUploadsMs
  for (const key of Object.values(job.uploads)) {
    // A host may give the result of another job as an input.
    if (key.startsWith(resultsPrefix) || (await isUploadInUse(key, ports))) continue
    if (mayHaveTicket && isOfTicket(key)) {
      // The marker first: after an interruption, all steps are repeated. A request that creates a job looks for it
      // afterwards, so that a new job is seen here, or its request sees the marker.
      await blobs.put(usedTicketKey(key), '')
      if (await isUploadInUse(key, ports)) {
        await blobs.delete(usedTicketKey(key))
        continue
      }
    }
    await blobs.delete(key)
  }
}

/** Failed jobs per upload to check; an upload with more of them is kept. */
const mostFailed = 100

/** Whether a queued or running job needs the upload, or a failed one may be retried with it. */
export async function isUploadInUse(
  key: string,
  { jobs, clock }: Pick<SharedParts, 'jobs' | 'clock'>,
): Promise<boolean> {
  if ((await jobs.count({ uploadKey: key, statuses: ['QUEUED', 'STARTED'] }, { max: 1 })) > 0) return true
  const failed = await jobs.list({ uploadKey: key, statuses: ['FAILED'], limit: mostFailed })
  if (failed.length === 0 || failed.length === mostFailed) return failed.length > 0
  const now = await clock.time()
  return failed.some((job) => keepsInputs(job, now))
}
