import type { JobRecord } from './job.js'

/** Bytes of a job's record without the client's data, but with its index rows. */
export const ordinaryRecordBytes = 1500

/**
 * Approximate bytes of a job's record in a store. Computed from fields that never change, so that a delete subtracts
 * exactly what the create added.
 */
export function recordBytes({
  params = {},
  metadata = {},
  copyResultsTo = {},
}: Partial<Pick<JobRecord, 'params' | 'metadata' | 'copyResultsTo'>>): number {
  return ordinaryRecordBytes + JSON.stringify([params, metadata, copyResultsTo]).length
}
