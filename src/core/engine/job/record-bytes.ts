import type { JobRecord } from './job.js'

/** Bytes of a job's record besides what its client sent, with its rows in indexes. */
export const ordinaryRecordBytes = 1500

/**
 * About what a store needs for a job's record. Computed from fields that never change, so that a delete subtracts
 * exactly what the create added.
 */
export function recordBytes({
  params = {},
  metadata = {},
  copyResultsTo = {},
}: Partial<Pick<JobRecord, 'params' | 'metadata' | 'copyResultsTo'>>): number {
  return ordinaryRecordBytes + JSON.stringify([params, metadata, copyResultsTo]).length
}
