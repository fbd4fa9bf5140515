import type { Connection, RequestOptions } from './connection.js'
import { randomKey } from './idempotency-key.js'
import type { JobStatus, NewJob, NewJobOf } from './job.js'
import type { JobFilter } from './job-filters.js'
import type { AnyOffer, Offer, OfferBy } from './offer.js'

export interface NewBatch<Job = Omit<NewJob, 'batchName'>> {
  /** `batchName` of the jobs. Default: a new name. */
  name?: string | null
  /** At most 500. Either all are created, or none. */
  jobs: readonly Job[]
  /** Where to send a signed message `batch.ended` when all jobs of the batch have ended. */
  webhook?: { url: string } | null
}

/** State of the jobs that share a `batchName`. */
export interface Batch {
  name: string
  total: number
  counts: Record<JobStatus, number>
  /** 0..1 over all jobs. */
  progress: number
  createdAt: string | null
  endedAt: string | null
}

export interface BulkReport {
  done: number
  refused: { id: string; code: string; message: string }[]
  /** Cursor to send as `after` in the next request; null once all jobs were examined. */
  next: string | null
}

/** Methods for many jobs at once. */
export interface ManyJobs<Offered extends AnyOffer = Offer> {
  createBatch<Id extends Offered['id']>(
    batch: NewBatch<{ workflow: Id } & BatchJobOf<OfferBy<Offered, Id>>>,
    options?: RequestOptions & { idempotencyKey?: string },
  ): Promise<{ name: string; ids: string[] }>
  /** Throws `NOT_FOUND` where there is no job with this `batchName`. */
  getBatch(name: string, options?: RequestOptions): Promise<Batch>
  /** Cancels the jobs that match, newest first; continue with `next`. */
  cancelJobs(filter: JobFilter, options?: RequestOptions): Promise<BulkReport>
  /** Runs failed jobs again. */
  retryJobs(filter: JobFilter, options?: RequestOptions): Promise<BulkReport>
  /** Deletes jobs in any state, with all their files. */
  deleteJobs(filter: JobFilter, options?: RequestOptions): Promise<BulkReport>
}

type BatchJobOf<Offered extends AnyOffer> = Offered extends AnyOffer ? Omit<NewJobOf<Offered>, 'batchName'> : never

export function manyJobs(connection: Connection): ManyJobs {
  const bulk =
    (action: 'cancel' | 'retry' | 'delete'): ManyJobs['cancelJobs'] =>
    async (filter, { signal } = {}) =>
      connection.value(`/job/${action}`, { method: 'POST', json: filter, isRepeatable: true, signal })
  return {
    async createBatch(batch, { idempotencyKey = randomKey(), signal } = {}) {
      const headers = { 'idempotency-key': idempotencyKey }
      const request = { method: 'POST', json: batch, headers, signal, isRepeatable: true } as const
      return await connection.value('/batch', request)
    },
    getBatch: async (name, { signal } = {}) =>
      connection.value('/batch', { query: new URLSearchParams({ name }), signal }),
    cancelJobs: bulk('cancel'),
    retryJobs: bulk('retry'),
    deleteJobs: bulk('delete'),
  }
}
