import { z } from 'zod'
import { pastAttemptSchema } from './history.js'
import { ledgerEntrySchema, usedSchema } from './ledger.js'
import { prioritySchema } from './scheduling.js'
import { stepRecordSchema } from './step.js'
import { traceContextSchema } from './trace-context.js'

/**
 * The four statuses of the specification. No other is ever stored or shown: existing clients would poll forever on it.
 */
export const jobStatusSchema = z.enum(['QUEUED', 'STARTED', 'SUCCEEDED', 'FAILED'])
export type JobStatus = z.infer<typeof jobStatusSchema>

/** A finished output, stored in the blob store under `key`. */
const jobOutputFields = z.object({
  key: z.string(),
  bytes: z.number().int().nonnegative(),
  contentType: z.string(),
  /** File name for downloads, for example `vocals.wav`; also the end of the result URL's path. */
  fileName: z.string(),
  /** A better file name for downloads, chosen by the workflow: any text without control characters. */
  downloadName: z.string().optional(),
  /** True once the file was sent to the client's storage (`copyResultsTo`) instead of being kept here. */
  copied: z.boolean().optional(),
})
export type JobOutput = z.infer<typeof jobOutputFields>
export const jobOutputSchema = keepingUnknown(jobOutputFields)

export const jobErrorSchema = z.object({
  code: z.enum(['BAD_INPUT', 'TIMEOUT', 'INTERNAL_ERROR', 'CANCELED']),
  title: z.string(),
  message: z.string(),
  reason: z.string().nullable(),
  retryable: z.boolean(),
})
export type JobError = z.infer<typeof jobErrorSchema>

/**
 * The right to run a job until `until`. `token` is the fencing token: it increases with every claim of the job, and a
 * write with an older token changes nothing.
 */
const leaseFields = z.object({
  owner: z.string(),
  token: z.number().int().positive(),
  /**
   * Distinguishes this claim from another with the same token: a database that lost its last commits may grant a token
   * twice. Empty in records of older versions.
   */
  nonce: z.string().default(''),
  /** Epoch milliseconds of the store's clock. */
  until: z.number(),
  /** Usage of the attempt so far, from the last heartbeat that reported any. */
  used: usedSchema.optional(),
})
export const leaseSchema = keepingUnknown(leaseFields)

/** One webhook message of the job's outbox, written in the same store operation as the state change that it reports. */
const deliveryFields = z.object({
  /** `webhook-id` header of every attempt to send this message. */
  id: z.string(),
  url: z.string(),
  event: z.string(),
  occurredAt: z.number(),
  attempts: z.number().int(),
  /** Epoch milliseconds of the next attempt; null when delivered or given up. */
  nextAttemptAt: z.number().nullable(),
  outcome: z.enum(['pending', 'delivered', 'gone', 'given_up']),
  lastStatus: z.number().int().nullable(),
})
export type Delivery = z.infer<typeof deliveryFields>
export const deliverySchema = keepingUnknown(deliveryFields)

const jobFields = z.object({
  id: z.string(),
  /** Id of the application that owns the job. */
  app: z.string(),
  name: z.string().nullable(),
  workflow: z.string(),
  /** The id that the client used, if it is an alias of the workflow. */
  alias: z.string().nullable().default(null),
  params: z.record(z.string(), z.unknown()),
  /** Blob keys of inputs that were uploaded to this service, by the name of the param that referred to them. */
  uploads: z.record(z.string(), z.string()),
  batchName: z.string().nullable(),
  metadata: z.record(z.string(), z.string()),
  /** The client's PUT URLs by output name. */
  copyResultsTo: z.record(z.string(), z.string()),
  webhook: z.object({ url: z.string(), events: z.array(z.string()).nullable() }).nullable(),

  status: jobStatusSchema,
  /** 0..1; never decreases within an attempt, nor between attempts if the job has steps. */
  progress: z.number().min(0).max(1),
  /** Progress when work was last kept (`Checkpoint`); the next attempt starts with it. */
  keptProgress: z.number().min(0).max(1).default(0),
  stage: z.string().nullable(),
  outputs: z.record(z.string(), jobOutputSchema).nullable(),
  /** Facts from the workflow about how it made the result, for example the model's name and hash. */
  details: z.record(z.string(), z.unknown()),
  error: jobErrorSchema.nullable(),
  /**
   * Why the last attempt failed, with stack and causes, for operators only: the text may contain paths and addresses,
   * and no response, event stream or webhook message includes it. At most about 8,000 characters.
   */
  failure: z.string().nullable().default(null),

  createdAt: z.number(),
  startedAt: z.number().nullable(),
  completedAt: z.number().nullable(),
  /** When the results or, for a FAILED job, the files for a retry are removed; null until the job ends. */
  expiresAt: z.number().nullable(),
  /** True once retention removed the result files: the job is still listed, its files answer 410. */
  expired: z.boolean(),

  lease: leaseSchema.nullable(),
  /** The last fencing token granted; stays when the lease ends. */
  token: z.number().int().nonnegative(),
  /**
   * Claims since work was last kept (`Checkpoint`), or in total, except claims that a shutdown requeued, that were
   * preempted or that followed a lapsed lease. Counted at the claim, so an input that kills its process cannot loop.
   */
  attempts: z.number().int().nonnegative(),
  /**
   * Claims since work was last kept whose lease expired, with a separate limit: the worker was killed, stopped or
   * disconnected, whether or not the job caused it.
   */
  lapses: z.number().int().nonnegative().default(0),
  /** Processor time of earlier attempts since the job was created or retried, for the usage ledger. */
  processorSeconds: z.number().nonnegative().default(0),
  /** Claims that a graceful shutdown requeued, with a separate limit. */
  shutdownRequeues: z.number().int().nonnegative(),
  /** Steps of its workflow that have begun, and events that came early. */
  steps: z.array(stepRecordSchema).default([]),
  /** The last attempts, oldest first. */
  history: z.array(pastAttemptSchema).default([]),
  /** How often the job was retried after it FAILED. */
  retries: z.number().int().nonnegative().default(0),
  /** Earliest start, as the client requested; 0: none. */
  notBefore: z.number(),
  /** When it is due after a failed, suspended or handed-back attempt, or a retry; null before the first of these. */
  dueAt: z.number().nullable().default(null),
  /** Latest end of the job; null: no limit. */
  deadline: z.number().nullable().default(null),
  /** Labels that the job needs of its worker (`poolOf`). */
  pool: z.string().default(''),
  /** Whether its usage counts against its application's quota. */
  metered: z.boolean().default(false),
  /** Within its application: jobs with a higher priority are claimed first. */
  priority: prioritySchema.default(0),
  cancelRequested: z.boolean(),
  /** Set first by a delete; the record is invisible from then on and is purged after its blobs are gone. */
  deleted: z.boolean(),
  /** The usage ledger's entry for the end of the job; null until then. */
  settlement: ledgerEntrySchema.nullable().default(null),
  idempotency: z.object({ key: z.string(), digest: z.string() }).nullable(),
  deliveries: z.array(deliverySchema),
  /** Position in the caller's trace at the submit; attempts and webhook messages continue that trace. */
  trace: traceContextSchema.nullable().default(null).catch(null),
})
/** A job as it is stored. All times are epoch milliseconds. */
export type JobRecord = z.infer<typeof jobFields>
export const jobRecordSchema = keepingUnknown(jobFields)

export function isTerminal(job: Pick<JobRecord, 'status'>): boolean {
  return job.status === 'SUCCEEDED' || job.status === 'FAILED'
}

/** Unknown fields are kept when reading and writing: a newer node may have written them. */
function keepingUnknown<Schema extends z.ZodObject>(schema: Schema): z.ZodType<z.infer<Schema>> {
  return schema.loose() as unknown as z.ZodType<z.infer<Schema>>
}
