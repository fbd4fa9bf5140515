import { createHash } from 'node:crypto'
import { z } from 'zod'
import { announced, isPending } from '../job/deliveries.js'
import { deliverySchema, type JobRecord, type JobStatus } from '../job/job.js'
import { traceContextSchema } from '../job/trace-context.js'
import type { WebhookMessage } from '../job/transitions.js'

export const batchKind = 'batch'

/** What is kept of a batch beside its jobs, which carry its name. All times are epoch milliseconds. */
export const batchSchema = z.looseObject({
  app: z.string(),
  name: z.string(),
  createdAt: z.number(),
  webhook: z.object({ url: z.string() }).nullable(),
  /** Null as long as a job of it has not ended. */
  endedAt: z.number().nullable(),
  /** Jobs are just being added: until then it has not ended, however few there are. */
  addingUntil: z.number(),
  /** Digest of each request with an idempotency key, by a hash of that, and whether its jobs have been made. */
  requests: z.record(z.string(), z.object({ digest: z.string(), made: z.boolean() })),
  deliveries: z.array(deliverySchema),
  /** Of the last request that added jobs; absent in what older versions wrote. */
  trace: traceContextSchema.nullish(),
})
export type Batch = z.infer<typeof batchSchema>

/** How a batch stands. */
export interface BatchStatus {
  name: string
  app: string
  /** Jobs of it that there are, counted up to 10,000 of each status. */
  total: number
  counts: Record<JobStatus, number>
  /** 0..1 over all jobs; one that has ended counts as done. */
  progress: number
  /** Null for a batch that is only the name of jobs that were submitted one by one. */
  createdAt: number | null
  /** When the last of its jobs ended. */
  endedAt: number | null
}

/** A key for any name. */
export function batchKey(app: string, name: string): string {
  return `${app}/${hash(name)}`
}

export function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** An id that a repeated request makes again, in the form of a UUID. */
export function repeatedId(app: string, idempotencyKey: string, index: number | 'batch'): string {
  const hex = hash(JSON.stringify(['batch', app, idempotencyKey, index]))
  // Version 8: made by a rule of one's own (RFC 9562).
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** The batch with a message that all its jobs have ended. */
export function ended(batch: Batch, now: number, message: WebhookMessage | undefined): Batch {
  const messages = message ? [announced(message, now)] : []
  // Of earlier ends only what is still to be sent.
  return { ...batch, endedAt: now, deliveries: [...batch.deliveries.filter(isPending), ...messages] }
}

/** When the batch has to be looked at next, from now on; null: never. */
export function nextLookMs(batch: Batch, now: number, lookAgainMs: number): number | null {
  if (batch.endedAt === null) return lookAgainMs
  const times = batch.deliveries.filter(isPending).flatMap(({ nextAttemptAt }) => nextAttemptAt ?? [])
  return times.length === 0 ? null : Math.max(0, Math.min(...times) - now)
}

export type JobOfBatch = Pick<JobRecord, 'app'> & { batchName: string }

export function isOfBatch(job: Pick<JobRecord, 'app' | 'batchName'>): job is JobOfBatch {
  return job.batchName !== null
}
