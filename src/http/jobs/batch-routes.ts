import { z } from 'zod'
import { mapInTurns } from '../../core/engine/limits/map-in-turns.js'
import type { Turn } from '../../core/engine/limits/rested.js'
import { json } from '../routing/answer.js'
import { notFound } from '../routing/problem.js'
import { defineRoute } from '../routing/route.js'
import { idempotencyHeader, idempotencyKey, jobFields, newJobProblems, requireUploads } from './create-job.js'
import { timeOrNull } from './job-view.js'
import { newJobSchema, timestampSchema } from '../schemas.js'

/** Most jobs in a batch: as many as fit into a request of the usual size. */
const mostJobs = 500
/** Members of the body: 16 for each job, its params and its metadata. */
const batchEntries = mostJobs * 16

const newBatchSchema = z
  .strictObject({
    name: z.string().min(1).max(255).nullish().describe('The `batchName` of its jobs. Default: a new one.'),
    webhook: z
      .strictObject({ url: z.url({ protocol: /^https?$/ }).max(8192) })
      .nullish()
      .describe('Where to send a signed message `batch.ended` when all jobs of the batch have ended.'),
    jobs: z
      .array(newJobSchema.omit({ batchName: true }).meta({ id: 'BatchJobRequest' }))
      .min(1)
      .max(mostJobs)
      .describe(`At most ${mostJobs}.`),
  })
  .meta({ id: 'BatchRequest' })

const newBatchViewSchema = z.object({ name: z.string(), ids: z.array(z.uuid()) }).meta({ id: 'BatchCreated' })

const count = z.int().describe('Counted up to 10,000.')

const batchViewSchema = z
  .object({
    name: z.string(),
    total: z.int().describe('Number of jobs.'),
    counts: z.object({ QUEUED: count, STARTED: count, SUCCEEDED: count, FAILED: count }),
    progress: z.number().min(0).max(1).describe('Over all jobs; an ended job counts as done.'),
    createdAt: timestampSchema.nullable().describe('Null for jobs with this name that were created one by one.'),
    endedAt: timestampSchema
      .nullable()
      .describe(
        'When the last of its jobs ended. Null if `createdAt` is: then only `counts` tells whether all have ended.',
      ),
  })
  .meta({ id: 'Batch' })

const nameSchema = z.strictObject({ name: z.string().min(1).max(255).describe('The name of the batch.') })

export const batchRoutes = [
  defineRoute({
    route: 'POST /batch',
    operation: 'createBatch',
    summary: 'Create many jobs at once',
    description:
      'Creates all jobs or none. `errors` lists the problems of each job, with paths such as `jobs.3.params`. The ' +
      'jobs carry the name of the batch as their `batchName`. If the batch exists, they are added to it.',
    bucket: 'create',
    body: newBatchSchema,
    bodyEntries: batchEntries,
    answer: {
      description: 'The name of the batch and the ids of its new jobs, in their order.',
      schema: newBatchViewSchema,
    },
    problems: newJobProblems,
    requestHeaders: { 'Idempotency-Key': idempotencyHeader('batch') },
    async handle(call, { body }) {
      const { engine, limiter, queries, storage } = call.service
      const app = call.caller.id
      limiter.refuseDebtor(app, 'create')
      // Charged for a refused batch, too, which costs nearly as much.
      limiter.charge(app, 'create', Math.floor(body.jobs.length / 10))
      const turn: Turn = (work) => queries.slice(app, work)
      const create = async () => {
        const jobs = await mapInTurns(body.jobs, (job, index) => jobFields(call, job, `jobs.${index}.`), turn)
        const fields = jobs.map(({ fields }) => fields)
        const batch = { app, name: body.name, webhook: body.webhook, jobs: fields }
        return engine.submitBatch(
          { ...batch, idempotencyKey: idempotencyKey(call.request.headers) },
          {
            trace: call.trace,
            turn,
            async beforeCreate() {
              await storage.refuseFull(app)
              for (const { uploads } of jobs) await requireUploads(call, uploads)
            },
          },
        )
      }
      const { name, ids } = await queries.request(app, create, call.request.signal)
      return json({ name, ids })
    },
  }),
  defineRoute({
    route: 'GET /batch',
    operation: 'getBatch',
    summary: 'Get the state of a batch',
    description:
      'Covers all jobs with this `batchName`. `GET /job?batchName=` lists them; `GET /archive?batchName=` returns ' +
      'their results.',
    query: nameSchema,
    answer: { description: 'The state of the batch.', schema: batchViewSchema },
    problems: ['NOT_FOUND'],
    async handle(call, { query: { name } }) {
      const { engine, queries } = call.service
      const app = call.caller.id
      const read = () => engine.batch(app, name, { turn: (work) => queries.slice(app, work) })
      const batch = await queries.request(app, read, call.request.signal)
      if (!batch) throw notFound('There is no batch with this name, and no job in it.')
      const { total, counts, progress } = batch
      const times = { createdAt: timeOrNull(batch.createdAt), endedAt: timeOrNull(batch.endedAt) }
      return json({ name, total, counts, progress, ...times })
    },
  }),
]
