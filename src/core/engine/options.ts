import { z } from 'zod'
import { StemworkError } from './errors.js'
import { labelSchema } from './job/pool.js'
import { quotaSchema } from './job/quota.js'
import type { AddressPolicy } from './fetch/address-guard.js'
import { allowList } from './fetch/allow-list.js'
import { longestTimerMs, workflowPolicySchema } from './workflow/policy.js'
import { defaultLogger, isLogger, type Logger, steadyLogger } from './ports/logger.js'
import { isTracing, noTracing, steadyTracing, type Tracing } from './ports/tracing.js'
import { checkInput, issueTexts } from './workflow/check-input.js'

const count = z.number().int().positive()
const whole = z.number().int().nonnegative()
const seconds = 1000
const minutes = 60 * seconds
const hours = 60 * minutes
const days = 24 * hours
// A thousand years: many clients cannot parse much later dates, and JavaScript cannot represent the latest ones.
const milliseconds = whole.max(365_000 * days)
const timer = whole.max(longestTimerMs)
const positiveTimer = count.max(longestTimerMs)
export const nicenessSchema = z.number().int().min(-20).max(19).default(10)

export const limitsSchema = z.strictObject({
  maxFileBytes: count.default(1024 ** 3).describe('Largest input or upload, in bytes.'),
  maxAudioSeconds: z.number().positive().default(3600).describe('Longest audio of an input, in seconds.'),
  maxQueuedJobs: z
    .number()
    .positive()
    .default(1000)
    .describe('Queued jobs an application may have; more are refused with QUEUE_FULL.'),
  jobTimeoutMs: positiveTimer
    .default(2 * hours)
    .describe('Longest duration of one attempt, after which the job ends with TIMEOUT.'),
  applications: z
    .record(
      z.string().min(1),
      z.strictObject({
        weight: z.number().int().min(1).max(100).optional(),
        reserved: whole.max(1000).optional(),
      }),
    )
    .default({})
    .describe(
      'Larger shares of the workers, by application id; set them alike on all workers. `weight` (1 to 100): how many ' +
        'jobs begin in each turn of the application. `reserved`: while fewer of its jobs than this run, its next ' +
        'job comes before those of all others, and jobs with a checkpoint give way to it at once, unless ' +
        '`dispatch.preemptAfterMs` is null.',
    ),
})

export const retentionSchema = z.strictObject({
  resultsMs: milliseconds.default(72 * hours).describe('How long result files are kept after the end of the job.'),
  unusedUploadsMs: milliseconds
    .default(24 * hours)
    .describe('How long an upload is kept that no open or failed job needs, such as that of a succeeded job.'),
  orphansMs: milliseconds
    .default(1 * hours)
    .describe(
      'Age from which files that belong to no result are removed. A newer one may belong to a write that is not ' +
        'recorded yet.',
    ),
  failedInputsMs: milliseconds
    .default(72 * hours)
    .describe(
      'How long the input of a failed job and the work of its attempts are kept, so that the job can be run again: ' +
        'its upload and, with checkpoints, also a downloaded input.',
    ),
  jobsMs: milliseconds.default(30 * days).describe('How long the record of an ended job is kept.'),
  usageMs: milliseconds
    .default(400 * days)
    .describe('How long the ledger keeps the usage of a day (UTC), even after its jobs have been deleted.'),
})

export const dispatchSchema = z.strictObject({
  concurrency: count
    .default(1)
    .describe(
      'Jobs that this process runs at a time. One separation uses all cores but one, so a second one rarely helps.',
    ),
  labels: z
    .array(labelSchema)
    .default([])
    .describe(
      'What this worker has, such as `gpu`, or how much, such as `gpuMemory=24`, which its running jobs share. It ' +
        'takes only jobs whose needs (`needs` of their workflow) it meets.',
    ),
  graceMs: timer
    .default(10 * seconds)
    .describe(
      'How long running jobs may take to finish when the process is closed or the worker drained. Then they are ' +
        'handed over to other workers, with their checkpoints. Workflows without checkpoints need longer.',
    ),
  niceness: nicenessSchema.describe(
    'Niceness of the child processes that do the work: with 10, other programs have priority; with 0, all are equal.',
  ),
  leaseMs: timer
    .min(300)
    .default(30 * seconds)
    .describe('How long a claim lasts without a heartbeat; a dead worker is noticed after this time.'),
  progressIntervalMs: timer
    .min(10)
    .default(1 * seconds)
    .describe('How often progress is written to the store while it changes.'),
  maxAttempts: count.default(3).describe('Number of attempts after which a job with temporary failures ends FAILED.'),
  maxLapses: whole
    .default(5)
    .describe(
      'How many workers a job may lose (killed, stopped or unreachable for longer than a lease) without counting ' +
        'an attempt. After one more, it ends FAILED.',
    ),
  maxShutdownRequeues: whole
    .default(20)
    .describe(
      'How many runs may end without counting as an attempt, because of a graceful shutdown, a download that made ' +
        'room for others, or a full disk. After the last two, the waits grow as between attempts.',
    ),
  storageOutageMs: milliseconds
    .default(30 * minutes)
    .describe(
      'How long a running job waits for an unavailable store. After that without the blob store it ends FAILED; ' +
        'without the job store, another worker may take it over.',
    ),
  retryDelayMs: milliseconds.default(1 * seconds).describe('Wait before the second attempt; doubles with each one.'),
  maxRetryDelayMs: milliseconds.default(10 * minutes).describe('Longest wait between attempts.'),
  retryJitter: z
    .number()
    .min(0)
    .max(1)
    .default(0.2)
    .describe(
      'The wait is extended at random by up to this share of it, so that jobs that failed together are not retried ' +
        'together.',
    ),
  preemptAfterMs: milliseconds
    .nullable()
    .default(10 * seconds)
    .describe(
      'How long a job with a checkpoint runs before it gives way to a waiting job of another application that has no ' +
        'job running, or at least two fewer. When it resumes, it runs at least 50 times as long as resuming took. ' +
        'null: never.',
    ),
  sweepIntervalMs: timer
    .min(10)
    .default(15 * seconds)
    .describe(
      'How often the worker looks for waiting jobs without a notification, and one of all workers for expired files ' +
        'and unfinished deletions. With more than 125 workers, each looks less often: every 0.12 s times their number.',
    ),
})

export const checkpointsSchema = z.strictObject({
  enabled: z
    .boolean()
    .default(true)
    .describe(
      'Whether finished work of a running job is kept in the blob store, so that a killed or stopped job continues ' +
        'from there. Never in a store that exists in one process only.',
    ),
  afterMs: milliseconds
    .default(5 * seconds)
    .describe('Work of a job before its first checkpoint: shorter jobs keep none.'),
  everyMs: milliseconds
    .positive()
    .default(seconds / 2)
    .describe(
      'Shortest time between two parts of a checkpoint. During a long attempt it grows to up to 30 times this value.',
    ),
  maxBytes: count
    .default(2 * 1024 ** 3)
    .describe(
      'Most bytes that the checkpoint of one job may take; an hour of one stem takes 1.27 GB. After that, an ' +
        'interruption costs all later work, so the job is no longer preempted, and the log says so.',
    ),
})

export const inputsSchema = z.strictObject({
  slowInputs: count
    .default(64)
    .describe(
      'How many slow inputs this process may fetch in addition to those of the running jobs. The more there are, the ' +
        'faster they have to arrive; at this number, the application with the most loses one to another that has none.',
    ),
  slowInputsPerApplication: count
    .default(4)
    .describe('How many of these one application may have. At this number, this process claims no more jobs of it.'),
  minBytesPerSecond: z
    .number()
    .positive()
    .default(8192)
    .describe('An input that arrives more slowly than this fails and is not fetched again.'),
  totalMs: positiveTimer.default(20 * minutes).describe('Longest download of one input.'),
})

export const webhooksSchema = z.strictObject({
  concurrency: count.default(50).describe('Messages that this process sends at a time.'),
  slowReceivers: count
    .default(200)
    .describe(
      'Further messages whose receivers have not answered within 250 ms. At this number, the application with ' +
        'the most loses one to another that has none; it is sent again later.',
    ),
  concurrencyPerApplication: count.default(5).describe('How many of all these one application may have.'),
  disableAfterMs: milliseconds
    .default(3 * days)
    .describe(
      'How long a receiver may fail. After five failures in a row it is tried with one message at a time, with ' +
        'pauses that grow from 1 minute to 2 hours; after this time it gets no messages until it is enabled.',
    ),
  secret: z
    .string()
    .optional()
    .describe(
      'Used for applications without their own webhook secret: the secret of each is derived from it ' +
        '(`applicationSecret`). "whsec_" followed by 24 to 64 bytes in base64.',
    ),
  timeoutMs: positiveTimer.default(15 * seconds).describe('How long a receiver may take to answer.'),
  retryDelaysMs: z
    .array(milliseconds)
    .default([5 * seconds, 5 * minutes, 30 * minutes, 2 * hours, 5 * hours, 10 * hours])
    .describe(
      'Waits between the attempts to deliver a message, which a sweep (`dispatch.sweepIntervalMs`) then repeats: by ' +
        'default seven attempts over about 18 hours.',
    ),
})

export const childOptionsSchema = z.strictObject({
  environment: z
    .record(z.string(), z.string())
    .default({})
    .describe(
      'Environment variables for the child processes, in addition to the few that they inherit (`PATH`, ' +
        '`STEMWORK_*` except secrets, keys and addresses, ...). They inherit no others.',
    ),
  nodeArguments: z
    .array(z.string())
    .default([])
    .describe(
      'Node arguments for the child processes, for example `--max-old-space-size=2048`. They do not inherit the ' +
        "host's arguments.",
    ),
  startTimeoutMs: positiveTimer.default(30 * seconds).describe('How long a new child process may take to start.'),
  idleMs: positiveTimer
    .default(10 * minutes)
    .describe('How long an idle child process and its loaded models are kept.'),
})

export type ChildOptions = z.input<typeof childOptionsSchema>

const policySchema: z.ZodType<AddressPolicy> = z.strictObject({
  allowPrivate: z.boolean().optional(),
  allow: z.array(z.string()).optional(),
  ports: z.array(z.number().int().min(1).max(65_535)).optional(),
  detail: z.boolean().optional(),
  resolver: z
    .custom<AddressPolicy['resolver']>((value) => typeof value === 'function', 'must be a function')
    .optional(),
})

export const engineOptionsSchema = z.strictObject({
  limits: limitsSchema.prefault({}),
  retention: retentionSchema.prefault({}),
  dispatch: dispatchSchema.prefault({}),
  checkpoints: checkpointsSchema.prefault({}),
  quota: quotaSchema
    .optional()
    .describe(
      'What each application may use in a day (UTC): `jobs`, `audioMinutes`, `bytes`; more are refused with ' +
        'QUOTA_EXCEEDED. Applications may have their own quotas. Default: no limit.',
    ),
  policies: z
    .record(z.string(), workflowPolicySchema)
    .default({})
    .describe(
      'Settings of single workflows, by id. They override the `policy` of `defineWorkflow`: `maxAttempts`, ' +
        '`retryDelayMs`, `maxRetryDelayMs`, `retryJitter`, `timeoutMs`, `retryOn`.',
    ),
  aliases: z
    .record(z.string(), z.string())
    .default({})
    .describe(
      'Other ids of workflows: alias to id, such as `music-ai/stems-vocals-accompaniment` to ' +
        '`service/stems-vocals-accompaniment`. Clients may use either.',
    ),
  inputs: inputsSchema.prefault({}),
  webhooks: webhooksSchema.prefault({}),
  fetch: policySchema
    .default({})
    .describe(
      'Which addresses inputs, webhooks and copy targets may have. Default: public ones on ports 80 and 443. ' +
        '`allow`: others, such as `10.1.0.0/16` or `nas.local:8080`. `ports`: more ports of public ones. ' +
        '`allowPrivate`: all, for development. `detail`: tells clients why one was refused.',
    ),
  scratchDirectory: z
    .string()
    .min(1)
    .optional()
    .describe("Folder for files of running jobs. Default: the system's temporary folder."),
  owner: z
    .string()
    .min(1)
    .optional()
    .describe('Name of this worker in leases and logs. Default: host name and process id.'),
  child: childOptionsSchema.prefault({}),
  logger: z
    .custom<Logger>(isLogger, 'must have the methods debug, info, warn and error, as pino and console have')
    .optional()
    .describe('Takes log lines: pino, `console` or your own. Default: warnings and errors go to stderr.'),
  tracing: z
    .custom<Tracing>(
      isTracing,
      'must be what openTelemetry() of stemwork/opentelemetry returns, or have a method begin',
    )
    .optional()
    .describe(
      'Records submits, attempts, their steps and webhook calls as spans: `openTelemetry()` or your own. Default: ' +
        'no spans are recorded; the context that a request carries is passed on.',
    ),
})

/** Settings of an engine; all are optional. */
export type EngineSettings = z.input<typeof engineOptionsSchema>
export type EngineOptions = z.output<typeof engineOptionsSchema> & { logger: Logger; tracing: Tracing }

// `createEngine` takes them out: only their names are needed, for messages about an unknown one.
const parts = ['workflows', 'jobs', 'applications', 'queue', 'blobs', 'runner', 'audioPeaks']
const optionsBesideParts = z.strictObject({
  ...Object.fromEntries(parts.map((part) => [part, z.undefined().optional()])),
  ...engineOptionsSchema.shape,
})

/** @throws StemworkError `INVALID_OPTIONS` naming the option and what it expects. */
export function resolveEngineOptions(settings: EngineSettings): EngineOptions {
  const result = checkInput(optionsBesideParts, settings)
  if (result.success) {
    // Parsed only to check it: a wrong entry must fail the start, not a job.
    allowList(result.data.fetch.allow ?? [])
    const { tracing } = result.data
    const logger = steadyLogger(result.data.logger ?? defaultLogger)
    return { ...result.data, logger, tracing: tracing ? steadyTracing(tracing, logger) : noTracing }
  }
  const problems = issueTexts(result, 'options')
  throw new StemworkError('INVALID_OPTIONS', `Invalid engine options. ${problems.join('; ')}.`, {
    details: { problems },
  })
}
