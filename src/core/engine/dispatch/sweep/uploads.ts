import { isOfTicket, resultsPrefix, usedTicketKey } from '../../job/blob-keys.js'
import type { JobRecord } from '../../job/job.js'
import { keepsInputs } from '../../job/retry.js'
import type { SharedParts } from '../../engine-parts.js'

/**
 * Removes the uploaded inputs of a deleted job, except those that another job needs. When a job ends, retention removes
 * them: a second job may use the same upload, and a ticket accepts no second file while the first exists. Afterwards a
 * mark says that it was used, as long as the ticket may live; retention removes it like an unused upload.
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
    // The mark first: if this is interrupted in between, both are done again.
    if (mayHaveTicket && isOfTicket(key)) await blobs.put(usedTicketKey(key), '')
    await blobs.delete(key)
  }
}

/** Failed jobs per upload to check; an upload with more of them is kept. */
const mostFailed = 100

/** Whether a job waits for the upload, uses it, or may be retried with it. */
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
