import { hash } from 'node:crypto'
import { z } from 'zod'
import { isPending, withMessages } from '../job/deliveries.js'
import { deliverySchema, type JobRecord, type JobStatus, jobStatusSchema } from '../job/job.js'
import { traceContextSchema } from '../job/trace-context.js'
import type { WebhookMessage } from '../job/transitions.js'

export const batchKind = 'batch'

/** The stored record of a batch, whose name its jobs carry. All times are epoch milliseconds. */
export const batchSchema = z.looseObject({
  app: z.string(),
  name: z.string(),
  createdAt: z.number(),
  webhook: z.object({ url: z.string() }).nullable(),
  /** Null until all its jobs have ended. */
  endedAt: z.number().nullable(),
  /** Jobs by status when the batch last ended, for its message; absent in records of older versions. */
  counts: z.record(jobStatusSchema, z.number()).nullish(),
  /** Set only by nodes of version 0.1, which add jobs after this record. Until this time, the batch has not ended. */
  addingUntil: z.number(),
  /**
   * Digest and time of the last requests with idempotency keys, by a hash of the key. `made` is false only while a node
   * of version 0.1 adds the jobs, or if that node stopped halfway. Older versions write no time.
   */
  requests: z.record(z.string(), z.object({ digest: z.string(), made: z.boolean(), at: z.number().optional() })),
  deliveries: z.array(deliverySchema),
  /** Context of the last request that added jobs; absent in records of older versions. */
  trace: traceContextSchema.nullish(),
})
export type Batch = z.infer<typeof batchSchema>

/** The state of a batch. */
export interface BatchStatus {
  name: string
  app: string
  /** Number of its jobs, counted up to 10,000 for each status. */
  total: number
  counts: Record<JobStatus, number>
  /** 0..1 over all jobs; an ended job counts as done. */
  progress: number
  /** Null for jobs that were submitted one by one with this name. */
  createdAt: number | null
  /** When the last of its jobs ended. Null if `createdAt` is: then only `counts` tells whether all have ended. */
  endedAt: number | null
}

export function newBatch(app: string, name: string, createdAt: number): Batch {
  return { app, name, createdAt, webhook: null, endedAt: null, addingUntil: 0, requests: {}, deliveries: [] }
}

/** Whether any job of the batch has not ended. */
export function isOpen({ QUEUED, STARTED }: Record<JobStatus, number>): boolean {
  return QUEUED + STARTED > 0
}

/** Key of a batch's document; valid for any name. */
export function batchKey(app: string, name: string): string {
  return `${app}/${hash('sha256', name)}`
}

/** An id in UUID form, the same in every repeat of the request. */
export function repeatedId(app: string, idempotencyKey: string, index: number | 'batch'): string {
  const hex = hash('sha256', JSON.stringify(['batch', app, idempotencyKey, index]))
  // Version 8: a custom scheme (RFC 9562).
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** A request with an idempotency key. */
export interface RepeatableRequest {
  /** Hash of the idempotency key. */
  key: string
  digest: string
}

/**
 * Bounds the record, which is read and written as a whole: a client may add jobs to one batch any number of times. A
 * repeat of an older request is still recognized by the ids of its jobs.
 */
const maxRequestsKept = 100

/** The batch after a request whose jobs exist. */
export function withRequest(batch: Batch, { key, digest }: RepeatableRequest, now: number): Batch {
  const requests = Object.entries({ ...batch.requests, [key]: { digest, made: true, at: now } })
  requests.sort(([, one], [, other]) => (one.at ?? 0) - (other.at ?? 0))
  return { ...batch, requests: Object.fromEntries(requests.slice(-maxRequestsKept)) }
}

/** The batch after all its jobs have ended. @param counts of its jobs, by status */
export function ended(
  batch: Batch,
  { now, counts, message }: { now: number; counts: Batch['counts']; message: WebhookMessage | undefined },
): Batch {
  // Keep only the unsent messages of earlier ends.
  const deliveries = withMessages(batch.deliveries.filter(isPending), message ? [message] : [], now)
  return { ...batch, endedAt: now, counts, deliveries }
}

/** The batch with open jobs again. Drops messages about its end that were never tried, as nobody has seen that end. */
export function reopened(batch: Batch): Batch {
  if (batch.endedAt === null) return batch
  return { ...batch, endedAt: null, deliveries: batch.deliveries.filter(({ attempts }) => attempts > 0) }
}

/** When to check the batch next; null: never. */
export function nextLookMs(batch: Batch, now: number, lookAgainMs: number): number | null {
  const times = batch.deliveries.filter(isPending).flatMap(({ nextAttemptAt }) => nextAttemptAt ?? [])
  if (batch.endedAt === null) times.push(now + lookAgainMs)
  return times.length === 0 ? null : Math.max(0, Math.min(...times) - now)
}

export type JobOfBatch = Pick<JobRecord, 'app'> & { batchName: string; completedAt?: number | null }

export function isOfBatch(job: Pick<JobRecord, 'app' | 'batchName'>): job is JobOfBatch {
  return job.batchName !== null
}
