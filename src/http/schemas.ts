import { z } from 'zod'
import { prioritySchema } from '../core/engine/job/scheduling.js'
import { isWebhookSecret } from '../core/engine/webhooks/signature.js'
import { nameableEvents } from '../core/engine/webhooks/webhook-message.js'
import { givenWords } from '../core/engine/workflow/issue-words.js'
import { jobErrorSchema, jobStatusSchema } from '../core/engine/job/job.js'

export const timestampSchema = z.iso.datetime({ offset: true }).meta({ examples: ['2025-01-31T12:00:00.000Z'] })

export const jobIdSchema = z.object({ id: z.uuid() }).meta({ id: 'JobId' })

const anyObject = z.record(z.string(), z.unknown())

export const workflowSummarySchema = z
  .object({ id: z.string(), name: z.string(), description: z.string() })
  .meta({ id: 'WorkflowSummary' })

const offeredWorkflowSchema = workflowSummarySchema
  .extend({
    aliasOf: z.string().optional().describe('If this is an alias: the id of its workflow.'),
    unavailable: z.string().optional().describe('Why its jobs cannot run at the moment. Absent if they can.'),
  })
  .meta({ id: 'OfferedWorkflow' })

export const workflowViewSchema = offeredWorkflowSchema
  .extend({
    params: anyObject.describe(
      'JSON Schema of the `params` of a job. Empty if JSON Schema cannot express the checks of the workflow.',
    ),
    limits: z
      .object({
        maxFileBytes: z.number().int().describe('Largest input file.'),
        maxAudioSeconds: z.number().describe('Longest audio of an input.'),
      })
      .describe('A larger or longer input ends the job with `BAD_INPUT`.'),
    events: z
      .array(z.string())
      .optional()
      .describe('Events that its jobs wait for and clients may send: `POST /job/{id}/event/{name}`.'),
  })
  .meta({ id: 'Workflow' })

export const jobViewSchema = z
  .object({
    id: z.uuid(),
    name: z.string().nullable().describe('The name that the job was given.'),
    status: jobStatusSchema.describe('`QUEUED`, `STARTED`, `SUCCEEDED` or `FAILED`.'),
    workflow: workflowSummarySchema,
    workflowParams: anyObject.describe('The `params` that were submitted.'),
    result: z
      .record(z.string(), z.string())
      .nullable()
      .describe('Output name to download link; null until SUCCEEDED. Every request for the job returns fresh links.'),
    files: z
      .record(
        z.string(),
        z.object({
          fileName: z.string().describe('A name to save the file under, for example `My song - vocals.wav`.'),
          contentType: z.string(),
          bytes: z.number().int(),
        }),
      )
      .nullable()
      .describe('Output name to name, type and size of the file; null until SUCCEEDED.'),
    details: anyObject
      .nullable()
      .describe(
        'How the result was made, as reported by the workflow, for example the name and hash of the model; null ' +
          'until SUCCEEDED.',
      ),
    error: jobErrorSchema.nullable().describe('Why the job ended FAILED, else null.'),
    steps: z
      .array(
        z.object({
          name: z.string(),
          state: z.enum(['done', 'failed', 'waiting']),
          startedAt: timestampSchema.describe('When its last try began.'),
          endedAt: timestampSchema.nullable(),
          attempts: z.number().int().describe('How often it was tried.'),
          error: z.object({ code: z.string(), message: z.string() }).nullable().describe('Why its last try failed.'),
          files: z.record(z.string(), z.number().int()).describe('Its files with their sizes in bytes.'),
        }),
      )
      .optional()
      .describe('The state of each step of the workflow. Absent if it has none.'),
    createdAt: timestampSchema.describe('When the job was created.'),
    startedAt: timestampSchema.nullable().describe('When its first attempt started.'),
    completedAt: timestampSchema.nullable().describe('When it ended.'),
    attempt: z
      .int()
      .describe('The running or last attempt, 0 before the first; starts again from 1 once work is kept.'),
    attempts: z.int().describe('After how many attempts with temporary failures the job ends FAILED.'),
    retryAt: timestampSchema
      .nullable()
      .describe('If its last attempt failed and another one follows: when that is due.'),
    app: z.string().describe('Id of the application that owns the job.'),
    batchName: z.string().nullable().describe('Jobs with the same batch name belong together.'),
    metadata: z.record(z.string(), z.string()).describe('The metadata that was submitted.'),
    progress: z.number().min(0).max(1).describe('Completed share of the work, 0 to 1.'),
    stage: z.string().nullable().describe('What a running job is doing, for example `separate`.'),
    expiresAt: timestampSchema
      .nullable()
      .describe('When the result files are removed; for a FAILED job, until when its uploads are kept for a retry.'),
    priority: z.int().describe("Among the application's own jobs: from -2 (last) to 2 (first)."),
    notBefore: timestampSchema.nullable().describe('The submitted time before which the job does not start.'),
    deadline: timestampSchema
      .nullable()
      .describe('If it has not ended by then, it ends FAILED with the reason `deadline`.'),
    queuePosition: z
      .int()
      .nullable()
      .describe(
        'For a waiting job, its position among the jobs of the application: 1 is next; 1001 means more than 1000. ' +
          'Only in the response of `GET /job/{id}` and in events.',
      ),
    estimate: z
      .object({
        startsAt: timestampSchema.nullable().describe('When a waiting job will probably start; null once it has.'),
        endsAt: timestampSchema.describe('When it will probably end.'),
      })
      .nullable()
      .describe(
        'From the progress of the job and from recent jobs; null without enough data, and once the job has ended. ' +
          'Only in the response of `GET /job/{id}` and in events.',
      ),
    waiting: z
      .object({ reason: z.enum(['scheduled', 'retrying', 'paused', 'no_worker', 'preempted']), message: z.string() })
      .nullable()
      .describe(
        'Why a waiting job does not start, besides the jobs before it: its time has not come, its last attempt ' +
          'failed and the next one is due later (`retryAt`), an operator has paused such jobs, no worker ' +
          'takes them, or it gave way to a job of another application and continues later. ' +
          'Only in the response of `GET /job/{id}` and in events.',
      ),
  })
  .meta({ id: 'Job' })
export type JobView = z.infer<typeof jobViewSchema>

export const jobStatusViewSchema = jobViewSchema
  .pick({ id: true, status: true, progress: true, stage: true })
  .meta({ id: 'JobProgress' })

export const peaksSchema = z
  .object({
    version: z.literal(2),
    channels: z.literal(1),
    sample_rate: z.number().int(),
    samples_per_pixel: z.number().int(),
    bits: z.literal(8),
    length: z.number().int(),
    data: z.array(z.number().int()),
  })
  .meta({ id: 'Peaks' })

export const uploadTicketSchema = z
  .object({
    uploadUrl: z.url().describe('PUT the file here, as the plain body or in the multipart field `filedata`.'),
    downloadUrl: z.url().describe('Pass this as the input URL once the upload is done.'),
    resumableUrl: z.url().optional().describe('Alternative, if present: start a resumable upload (tus 1.0) here.'),
  })
  .meta({ id: 'UploadTicket' })

export const applicationViewSchema = z.object({ id: z.string(), name: z.string() }).meta({ id: 'Application' })

export const keyViewSchema = z
  .object({
    id: z.string(),
    label: z.string().nullable(),
    createdAt: timestampSchema,
    expiresAt: timestampSchema.nullable().describe('When the key stops working, or stopped; null: never.'),
    isCurrent: z.boolean().describe('Whether this request used it.'),
  })
  .meta({ id: 'Key' })

export const keyListSchema = z.object({ keys: z.array(keyViewSchema) }).meta({ id: 'KeyList' })

export const newKeySchema = z
  .strictObject({ label: z.string().trim().min(1).max(100).nullish().describe('What the key is for.') })
  .meta({ id: 'KeyRequest' })

export const issuedKeySchema = keyViewSchema
  .extend({ key: z.string().describe('The key itself. It is not stored and is shown only in this response.') })
  .meta({ id: 'IssuedKey' })

export const jobLinkSchema = z
  .object({
    id: z.uuid(),
    url: z.string().describe('The address to send to somebody. It is shown in every list, too.'),
    createdAt: timestampSchema,
    expiresAt: timestampSchema,
    opens: z.int().describe('How often its page was opened.'),
  })
  .meta({ id: 'JobLink' })

export const jobLinkListSchema = z.object({ links: z.array(jobLinkSchema) }).meta({ id: 'JobLinkList' })

const daySeconds = 24 * 60 * 60

export const newJobLinkSchema = z
  .strictObject({
    expiresInSeconds: z
      .int()
      .min(1)
      .max(365 * daySeconds)
      .default(30 * daySeconds)
      .describe('How long the link works, up to a year.'),
  })
  .meta({ id: 'JobLinkRequest' })

export const webhookSecretSchema = z.object({ secret: z.string() }).meta({ id: 'WebhookSecret' })

export const newWebhookSecretSchema = z
  .strictObject({
    secret: z
      .string()
      .max(100)
      .refine(isWebhookSecret, 'must be "whsec_" and the base64 of 24 to 64 bytes')
      .meta({ pattern: '^whsec_[A-Za-z0-9+/]{32,86}={0,2}$' })
      .optional()
      .describe('Default: a new one (recommended).'),
    overlapSeconds: z
      .int()
      .min(0)
      .max(30 * 24 * 3600)
      .optional()
      .describe('How long the previous secret also signs. Default: a day.')
      .meta({ default: 86_400 }),
  })
  .meta({ id: 'WebhookSecretRequest' })

export const workflowListSchema = z.object({ workflows: z.array(offeredWorkflowSchema) }).meta({ id: 'WorkflowList' })

const httpUrl = z
  .url({
    protocol: /^https?$/,
    error: ({ code, input }) =>
      code === 'invalid_format'
        ? `must be a complete URL that begins with http:// or https://${givenWords(input)}`
        : undefined,
  })
  .max(8192)
const nameSchema = z.string().min(1).max(255)
const timeSchema = z.iso
  .datetime({ offset: true })
  .max(40)
  .refine((time) => !(Date.parse(time) < 0), 'must not be before 1970-01-01T00:00:00Z')

/** Counts before it validates, so thousands of wrong entries cost as little as one. */
function atMost<Schema extends z.ZodType>(count: number, things: 'keys' | 'entries', schema: Schema) {
  return z.preprocess(
    (value, context) => {
      const size = typeof value === 'object' && value !== null ? Object.keys(value).length : 0
      if (size > count)
        context.issues.push({ code: 'custom', input: value, message: `may have at most ${count} ${things}` })
      return value
    },
    schema.meta(things === 'keys' ? { maxProperties: count } : { maxItems: count }),
  )
}

/** Bounds the length of a value as JSON, about the bytes that a job stores for it. */
function shorterThan<Schema extends z.ZodType>(characters: number, schema: Schema) {
  return schema.refine((value) => JSON.stringify(value).length <= characters, {
    message: `may have at most ${characters} characters as JSON`,
  })
}

export const newJobSchema = z
  .strictObject({
    name: nameSchema.nullish().describe('A name to show, for example that of the song. Downloads are named after it.'),
    workflow: z.string().min(1).max(200).describe('Id of the workflow to run; `GET /workflow` lists them.'),
    params: anyObject.describe(
      'Parameters of the workflow, for example `inputUrl`; `GET /workflow/{id}` has their schema.',
    ),
    batchName: nameSchema.nullish().describe('Jobs with the same batch name belong together.'),
    metadata: atMost(50, 'keys', z.record(z.string().min(1).max(40), z.string().max(500)))
      .optional()
      .describe('Your own labels. The service returns them and does not read them.'),
    copyResultsTo: atMost(32, 'keys', shorterThan(32 * 1024, z.record(z.string().min(1).max(100), httpUrl)))
      .optional()
      .describe(
        'Output name to a PUT URL in your own storage, to which the result is copied. At most 32,768 characters as ' +
          'JSON.',
      ),
    webhook: z
      .strictObject({ url: httpUrl, events: atMost(20, 'entries', z.array(z.enum(nameableEvents))).nullish() })
      .nullish()
      .describe('Where to send a signed message at each of the `events`; without `events`, at the end of the job.'),
    priority: prioritySchema
      .optional()
      .describe("Among the application's own jobs: higher ones start first. Default: 0."),
    notBefore: timeSchema.nullish().describe('The job does not start before this time.'),
    deadline: timeSchema
      .nullish()
      .describe('A job that has not ended by this time ends FAILED with the reason `deadline`.'),
  })
  .meta({ id: 'JobRequest' })

export const problemSchema = z
  .object({
    code: z.string(),
    title: z.string(),
    message: z.string(),
    status: z.number().int(),
    reason: z.string().optional(),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
    requestId: z.string(),
  })
  .meta({ id: 'Problem' })
