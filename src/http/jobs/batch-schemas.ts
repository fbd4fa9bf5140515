import { z } from 'zod'
import { newJobSchema, timestampSchema } from '../schemas.js'

/** As many as fit into a request of the usual size. */
const mostJobs = 500
/** Members of the body: for each job, its own and some of its params and metadata. */
export const batchEntries = mostJobs * 16

export const newBatchSchema = z
  .strictObject({
    name: z.string().min(1).max(255).nullish().describe('The `batchName` of its jobs. Default: a new one.'),
    webhook: z
      .strictObject({ url: z.url({ protocol: /^https?$/ }).max(8192) })
      .nullish()
      .describe('Where to send a signed message `batch.ended` when all jobs of the batch have ended.'),
    jobs: z
      .array(newJobSchema.omit({ batchName: true }))
      .min(1)
      .max(mostJobs)
      .describe(`At most ${mostJobs}.`),
  })
  .meta({ id: 'NewBatch' })

export const newBatchViewSchema = z.object({ name: z.string(), ids: z.array(z.uuid()) }).meta({ id: 'BatchCreated' })

const count = z.int().describe('Counted up to 10,000.')

export const batchViewSchema = z
  .object({
    name: z.string(),
    total: z.int().describe('Number of jobs.'),
    counts: z.object({ QUEUED: count, STARTED: count, SUCCEEDED: count, FAILED: count }),
    progress: z.number().min(0).max(1).describe('Over all jobs; an ended job counts as done.'),
    createdAt: timestampSchema.nullable().describe('Null for jobs with this name that were created one by one.'),
    endedAt: timestampSchema.nullable().describe('When the last of its jobs ended.'),
  })
  .meta({ id: 'Batch' })
