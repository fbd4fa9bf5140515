import type { JobRecord } from './job.js'

/** Bytes of a job's result files in the blob store: 0 once they were removed or sent to the client's own storage. */
export function resultBytes(job: Pick<JobRecord, 'deleted' | 'expired' | 'outputs'>): number {
  if (job.deleted || job.expired) return 0
  return Object.values(job.outputs ?? {}).reduce((sum, { bytes, copied }) => sum + (copied ? 0 : bytes), 0)
}
