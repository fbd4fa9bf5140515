import type { JobRecord } from '../../../core/engine/job/job.js'
import { recordBytes } from '../../../core/engine/job/record-bytes.js'
import { filteredFields } from '../../../core/engine/ports/job-query.js'

/** Fields of a job that the index reads. */
const indexedFields = [
  ...filteredFields,
  'pool',
  'expiresAt',
  'expired',
  'outputs',
  'lease',
  'cancelRequested',
  'notBefore',
  'dueAt',
  'settlement',
  'deadline',
  'priority',
  'deleted',
  'idempotency',
  'deliveries',
] as const satisfies readonly (keyof JobRecord)[]

/** @experimental */
export type IndexedJob = Pick<JobRecord, (typeof indexedFields)[number]> & RecordSize

/** Bytes of the job's record (`recordBytes`), or the fields that they are computed from. */
type RecordSize = Partial<Pick<JobRecord, 'params' | 'metadata' | 'copyResultsTo'> & { recordBytes: number }>

/**
 * A job without what the index does not read.
 *
 * @experimental
 */
export function indexedPart(job: JobRecord): IndexedJob {
  const fields = Object.fromEntries(indexedFields.map((field) => [field, job[field]]))
  return { ...fields, recordBytes: recordBytes(job) } as unknown as IndexedJob
}
