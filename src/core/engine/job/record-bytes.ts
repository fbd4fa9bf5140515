import type { JobRecord } from './job.js'

/** What the record of a job takes beside what its client sent, with its rows in indexes. */
export const ordinaryRecordBytes = 1500

/**
 * About what a store needs for the record of a job. It follows from what never changes of it, so that what is added
 * when the job is created is what is taken off when it is deleted.
 */
export function recordBytes({
  params = {},
  metadata = {},
  copyResultsTo = {},
}: Partial<Pick<JobRecord, 'params' | 'metadata' | 'copyResultsTo'>>): number {
  return ordinaryRecordBytes + JSON.stringify([params, metadata, copyResultsTo]).length
}
