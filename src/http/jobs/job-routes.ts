import { z } from 'zod'
import type { JobRecord } from '../../core/engine/job/job.js'
import { type ApiAnswer, json, jsonOf } from '../routing/answer.js'
import type { KeyedCall } from '../routing/call.js'
import { createJob, idempotencyHeader, newJobProblems } from './create-job.js'
import { fewerPeaks } from './fewer-peaks.js'
import { allJobEvents, jobEvents } from './job-events.js'
import { jobListQuerySchema, listJobs, nextPageWords, wholeNumber } from './job-list.js'
import { jobView, pendingJobView } from './job-view.js'
import { answerGrowing, answerGrowingPeaks } from './growing-result.js'
import { preferredWait, waitForEnd } from './prefer-wait.js'
import { conflict, notFound } from '../routing/problem.js'
import { defineRoute } from '../routing/route.js'
import { jobIdSchema, jobStatusViewSchema, jobViewSchema, newJobSchema, peaksSchema } from '../schemas.js'
import { mostCounted } from '../../core/engine/ports/job-store.js'

const peaksQuerySchema = z.strictObject({
  length: wholeNumber(1, 8192).describe('Most entries to return; neighbours are merged. Default: all, at most 8,192.'),
})

const eventSchema = z.strictObject({
  value: z.unknown().optional().describe('What the step gets: any JSON of at most 16,384 characters.'),
})

/** A job's ID is a UUID: other lengths need no look-up, and no store gets a text of arbitrary size. */
const mayBeId = (id: string) => id.length === 36

export const jobRoutes = [
  defineRoute({
    route: 'POST /job',
    operation: 'createJob',
    summary: 'Create a job',
    readsAhead: true,
    bucket: 'create',
    body: newJobSchema,
    answer: { description: 'The id of the new job.', schema: jobIdSchema },
    problems: ['UNKNOWN_WORKFLOW', ...newJobProblems],
    requestHeaders: {
      'Idempotency-Key': idempotencyHeader('job'),
      Prefer: '`wait=n` responds with the whole job when it has ended, or after n seconds (at most 60).',
    },
    async handle(call, { body }) {
      const job = await createJob(call, body)
      const seconds = preferredWait(call.request.headers)
      if (seconds === undefined) return json({ id: job.id })
      return json(await jobView(existing(await waitForEnd(call, job, seconds)), call))
    },
  }),
  defineRoute({
    route: 'GET /job/:id',
    operation: 'getJob',
    summary: 'Get a job',
    readsAhead: true,
    isOpenToLinks: true,
    answer: { description: 'The job.', schema: jobViewSchema },
    problems: ['NOT_FOUND'],
    requestHeaders: { Prefer: '`wait=n` responds when the job has ended, or after n seconds (at most 60).' },
    async handle(call, { params }) {
      const job = await requireJob(call, params.id)
      const seconds = preferredWait(call.request.headers)
      const waited = seconds === undefined ? job : await waitForEnd(call, job, seconds)
      return json(await pendingJobView(existing(waited), call))
    },
  }),
  defineRoute({
    route: 'GET /job/:id/status',
    operation: 'getJobStatus',
    summary: 'Get the status of a job',
    description: 'Cheap to poll, with its own rate limit.',
    readsAhead: true,
    isOpenToLinks: true,
    bucket: 'status',
    answer: { description: 'The status of the job.', schema: jobStatusViewSchema },
    problems: ['NOT_FOUND'],
    handle: (call, { params }) => findJob(call, params.id).then(statusAnswer),
  }),
  defineRoute({
    route: 'DELETE /job/:id',
    operation: 'deleteJob',
    summary: 'Delete a job',
    description: 'In any state: a running job is aborted, and its files and uploaded input are removed.',
    answer: { description: 'The id of the deleted job.', schema: jobIdSchema },
    problems: ['NOT_FOUND'],
    async handle(call, { params }) {
      const job = mayBeId(params.id) ? await call.service.engine.delete(params.id, { app: call.caller.id }) : undefined
      return json({ id: existing(job).id })
    },
  }),
  defineRoute({
    route: 'POST /job/:id/cancel',
    operation: 'cancelJob',
    summary: 'Cancel a job',
    description:
      'A waiting job becomes FAILED with the code CANCELED, a running one as soon as it is stopped; an ended job ' +
      'does not change.',
    answer: { description: 'The job as it is now.', schema: jobViewSchema },
    problems: ['NOT_FOUND'],
    async handle(call, { params }) {
      const job = mayBeId(params.id) ? await call.service.engine.cancel(params.id, { app: call.caller.id }) : undefined
      return json(await jobView(existing(job), call))
    },
  }),
  defineRoute({
    route: 'POST /job/:id/retry',
    operation: 'retryJob',
    summary: 'Retry a failed job',
    description:
      'Runs it with its original params and inputs; uploads are kept until `expiresAt` of the job. The job keeps ' +
      'its id, waits behind the existing jobs, and counts as a new one against limits and quotas.',
    bucket: 'create',
    answer: { description: 'The job as it is now.', schema: jobViewSchema },
    problems: [
      'NOT_FOUND',
      'CONFLICT',
      'GONE',
      'QUEUE_FULL',
      'QUOTA_EXCEEDED',
      'STORAGE_FULL',
      'DRAINING',
      'SHUTTING_DOWN',
    ],
    async handle(call, { params }) {
      const { engine, storage } = call.service
      const app = call.caller.id
      await storage.refuseFull(app)
      const job = mayBeId(params.id) ? await engine.retry(params.id, { app }) : undefined
      return json(await jobView(existing(job), call))
    },
  }),
  defineRoute({
    route: 'POST /job/:id/event/:name',
    operation: 'sendEvent',
    summary: 'Send a job the event that it waits for',
    description:
      'For workflows that wait, for example for an approval; `events` of the workflow names what may be sent. The ' +
      'first one counts, even if it comes before the job waits for it.',
    body: eventSchema,
    answer: { description: 'The job as it is now.', schema: jobViewSchema },
    problems: ['NOT_FOUND', 'CONFLICT', 'BAD_INPUT'],
    async handle(call, { params: { id, name }, body }) {
      const job = await requireJob(call, id)
      const { engine } = call.service
      const events = engine.workflows.get(job.workflow)?.events ?? []
      if (!events.includes(name))
        throw notFound(
          `The workflow of the job takes no event ${JSON.stringify(name)} from clients, but ` +
            `${events.join(', ') || 'none'}.`,
        )
      const changed = await engine.sendEvent(job.id, name, body.value, { app: call.caller.id })
      if (!changed) throw conflict('The job has ended, or it has had this event already.')
      return json(await jobView(changed, call))
    },
  }),
  defineRoute({
    route: 'GET /job/events',
    operation: 'followJobs',
    summary: 'Follow all jobs by server-sent events',
    description:
      'Sends `ready` once, then an event `job` with the whole job at each change of any job of the application, ' +
      'and `deleted` with the id of a deleted job; if another process deletes it, only if it was open or among the ' +
      'newest 50. To miss none, list the jobs after `ready`. `webhook-receiver` ' +
      'shows a webhook receiver that has failed for too long and was disabled.',
    answer: { description: 'Events until the client closes the stream.', contentType: 'text/event-stream' },
    handle: async (call) => allJobEvents(call),
  }),
  defineRoute({
    route: 'GET /job/:id/peaks/:output',
    operation: 'getPeaks',
    summary: 'Get the peaks of an audio result',
    description:
      'For players that draw waveforms, in the JSON format of audiowaveform (version 2): `data` alternates the ' +
      'lowest and the highest value of each `samples_per_pixel` samples. Measured at the first request, then ' +
      'kept with the result.',
    isOpenToLinks: true,
    query: peaksQuerySchema,
    answer: { description: 'The peaks.', schema: peaksSchema },
    problems: ['NOT_FOUND', 'BAD_INPUT'],
    async handle(call, { params, query: { length } }) {
      const job = await requireJob(call, params.id)
      const peaks = await call.service.engine.peaks(job, params.output, { signal: call.request.signal })
      if (peaks === undefined)
        throw notFound(
          'The job has no such result file. Its outputs are in `result`, unless they have expired or were sent to ' +
            'other storage.',
        )
      const answer =
        length === undefined ? peaks : JSON.stringify(fewerPeaks(peaksSchema.parse(JSON.parse(peaks)), length))
      const headers = { 'cache-control': 'private, max-age=86400', vary: 'authorization, cookie' }
      return jsonOf(answer, { headers })
    },
  }),
  defineRoute({
    route: 'GET /job/:id/growing/:output',
    operation: 'getGrowingResult',
    summary: 'Get a result while the job is running',
    description:
      'Without `Range`: the whole file, each byte as soon as it is written, until the job has ended. With `Range: ' +
      'bytes=n-`: the bytes written so far, from byte n on. They are the bytes of the final result, except for ' +
      'the lengths in its header, which are known only at the end. Only the machine that runs the job has them; ' +
      'others respond with 404 and the reason `elsewhere`.',
    isOpenToLinks: true,
    answer: { description: 'The file as it grows.', contentType: 'application/octet-stream' },
    otherAnswers: {
      206: 'The available part of the range.',
      307: 'The job has succeeded: `Location` is the link to the result.',
    },
    problems: ['NOT_FOUND', 'RANGE_NOT_SATISFIABLE'],
    requestHeaders: { Range: 'One range of bytes, from the first missing one.' },
    handle: async (call, { params }) => answerGrowing(call, await requireJob(call, params.id), params.output),
  }),
  defineRoute({
    route: 'GET /job/:id/growing/:output/peaks',
    operation: 'getGrowingPeaks',
    summary: 'Get the peaks of a result while the job is running',
    description:
      'The peaks so far, in the binary format of audiowaveform (version 2, 8 bits). The `length` in the header ' +
      'is that of the whole song, or 0 if the input does not state it.',
    isOpenToLinks: true,
    answer: { description: 'The peaks so far.', contentType: 'application/octet-stream' },
    otherAnswers: { 206: 'The available part of the range.' },
    problems: ['NOT_FOUND', 'RANGE_NOT_SATISFIABLE'],
    requestHeaders: { Range: 'One range of bytes, from the first missing one.' },
    handle: async (call, { params }) => answerGrowingPeaks(call, await requireJob(call, params.id), params.output),
  }),
  defineRoute({
    route: 'GET /job/:id/events',
    operation: 'followJob',
    summary: 'Follow a job by server-sent events',
    description:
      'Sends an event `job` with the whole job at once and at each change, `deleted` if it is deleted, and closes ' +
      'when the job has ended. The machine that runs the job also sends `growing` when more of its results can ' +
      'be read: by name, the available `bytes` and the `url` for ranges of them (`GET ' +
      '/job/{id}/growing/{output}`).',
    answer: { description: 'Events until the job has ended.', contentType: 'text/event-stream' },
    otherAnswers: { 204: 'The job has ended and the client has seen it (`Last-Event-ID: end`).' },
    requestHeaders: { 'Last-Event-ID': 'Id of the last event received.' },
    problems: ['NOT_FOUND'],
    async handle(call, { params }) {
      return jobEvents(call, await requireJob(call, params.id))
    },
  }),
  defineRoute({
    route: 'GET /job',
    operation: 'listJobs',
    summary: 'List jobs',
    description:
      'Newest first. Page numbers cover the first 10,000 jobs; the Link header leads to all of them. A page of ' +
      'very large jobs may be refused; the message says how many rows fit. Against the rate limit, a list ' +
      'counts as one more request per 64 KiB.',
    readsAhead: true,
    query: jobListQuerySchema,
    answer: {
      description: 'The jobs.',
      schema: z.array(jobViewSchema),
      headers: {
        Link: nextPageWords,
        'X-Total-Count':
          `Matching jobs on all pages. They are counted up to ${mostCounted}; that number means that ` +
          'many or more.',
      },
    },
    async handle(call, { query }) {
      const { json: list, total, next } = await listJobs(call, query)
      const headers: Record<string, string> = { 'x-total-count': String(total) }
      if (next) headers.link = `<${call.baseUrl}/job?${next.toString()}>; rel="next"`
      return jsonOf(list, { headers })
    },
  }),
]

export async function requireJob(call: KeyedCall, id: string): Promise<JobRecord> {
  return existing(await findJob(call, id))
}

function statusAnswer(job: JobRecord | undefined): ApiAnswer {
  const { id, status, progress, stage } = existing(job)
  return json({ id, status, progress, stage })
}

function findJob(call: KeyedCall, id: string): Promise<JobRecord | undefined> {
  return mayBeId(id) ? call.service.engine.get(id, { app: call.caller.id }) : Promise.resolve(undefined)
}

/** @throws Problem `NOT_FOUND`, the same for an unknown id, a malformed one and another application's job */
function existing(job: JobRecord | undefined): JobRecord {
  if (job) return job
  throw notFound('There is no job with this id. It may have been deleted, or it belongs to another application.')
}
