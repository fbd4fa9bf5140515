import { z } from 'zod'
import type { BulkAction } from '../../core/engine/engine.js'
import { type JobRecord, jobStatusSchema } from '../../core/engine/job/job.js'
import { labelsOf } from '../../core/engine/job/pool.js'
import type { JobQuery } from '../../core/engine/ports/job-store.js'
import type { HttpEngine } from '../http-engine.js'
import type { BulkFacts, JobFacts, JobPage, JobRow } from './answers.js'

const cursorForm = /^(\d{1,16})@([0-9a-f-]{0,36})$/i
const idForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const pageSize = 50

export const jobSearchSchema = z.strictObject({
  status: jobStatusSchema.optional(),
  workflow: z.string().min(1).max(200).optional(),
  /** Id of an application. */
  app: z.string().min(1).max(128).optional(),
  /** An id, a batch, or a piece of a name, of an error or of its reason. */
  text: z.string().max(255).optional(),
  after: z.string().regex(cursorForm, 'must be a cursor of an earlier page').optional(),
})
export type JobSearch = z.output<typeof jobSearchSchema>

/** Jobs of all applications, newest first. */
export async function searchJobs(engine: HttpEngine, query: JobSearch): Promise<JobPage> {
  const text = textOf(query)
  if (idForm.test(text)) {
    const job = await engine.get(text)
    return { jobs: job ? [jobRow(job)] : [], next: null, looked: null }
  }
  const page = { ...filtersOf(query), limit: pageSize, after: cursorOf(query.after) }
  const { jobs, next, looked } = await engine.search(page, whereOf(text))
  return { jobs: jobs.map(jobRow), next: next ? cursorText(next) : null, looked: text === '' ? null : looked }
}

/** Changes one page of the matching jobs that can be changed. Continue with `after: next`. */
export async function actOnFound(engine: HttpEngine, action: BulkAction, query: JobSearch): Promise<BulkFacts> {
  const text = textOf(query)
  const named = idForm.test(text) ? await engine.get(text) : undefined
  if (idForm.test(text) && !named) return { done: 0, refused: [], next: null, isFull: false }
  const { done, refused, next, isFull } = await engine.bulk(
    action,
    // An ID is found regardless of how many jobs are newer.
    { ...filtersOf(query), ...(named && { createdAfter: named.createdAt, createdBefore: named.createdAt + 1 }) },
    { limit: pageSize, after: cursorOf(query.after), where: whereOf(text) },
  )
  return { done, refused, next: next ? cursorText(next) : null, isFull }
}

function textOf({ text }: JobSearch): string {
  return text?.trim().toLowerCase() ?? ''
}

function filtersOf({ status, workflow, app }: JobSearch): JobQuery {
  return { statuses: status && [status], workflows: workflow === undefined ? undefined : [workflow], app }
}

function whereOf(text: string): ((job: JobRecord) => boolean) | undefined {
  if (text === '') return undefined
  return idForm.test(text) ? ({ id }) => id === text : (job) => matches(job, text)
}

function matches({ id, name, batchName, error, failure, workflow }: JobRecord, text: string): boolean {
  const texts = [id, name, batchName, workflow, error?.code, error?.reason, error?.message, failure]
  return texts.some((each) => each?.toLowerCase().includes(text))
}

function cursorOf(text: string | undefined): { createdAt: number; id: string } | undefined {
  const [, createdAt, id] = cursorForm.exec(text ?? '') ?? []
  return id === undefined ? undefined : { createdAt: Number(createdAt), id }
}

function cursorText({ createdAt, id }: { createdAt: number; id: string }): string {
  return `${createdAt}@${id}`
}

function jobRow(job: JobRecord): JobRow {
  const { id, name, app, workflow, batchName, status, stage, progress, createdAt, startedAt, completedAt, error } = job
  const worker = job.lease?.owner ?? job.history.at(-1)?.worker ?? null
  const times = { createdAt, startedAt, completedAt }
  return { id, name, app, workflow, batchName, status, stage, progress, ...times, attempts: job.token, worker, error }
}

/** Everything that an operator may want to know about a job. */
export async function jobFacts(engine: HttpEngine, job: JobRecord): Promise<JobFacts> {
  return {
    ...jobRow(job),
    params: job.params,
    metadata: job.metadata,
    priority: job.priority,
    notBefore: job.notBefore === 0 ? null : job.notBefore,
    deadline: job.deadline,
    expiresAt: job.expiresAt,
    cancelRequested: job.cancelRequested,
    queuePosition: (job.status === 'QUEUED' ? await engine.queuePosition(job.id) : undefined) ?? null,
    waiting: (await engine.waiting(job)) ?? null,
    needs: labelsOf(job.pool),
    history: job.history,
    steps: job.steps.map(({ name, state, startedAt, endedAt, attempts, until, error, files }) => {
      const sizes = Object.entries(files).map(([file, { bytes }]) => ({ name: file, bytes }))
      return { name, state, startedAt, endedAt, attempts, until, error, files: sizes }
    }),
    failure: job.failure,
    webhooks: job.deliveries.map(({ event, url, outcome, attempts, lastStatus, nextAttemptAt }) => {
      return { event, url, outcome, attempts, status: lastStatus, nextAt: nextAttemptAt }
    }),
    outputs: Object.entries(job.outputs ?? {}).map(([name, { fileName, bytes }]) => ({ name, fileName, bytes })),
    traceId: job.trace?.traceparent.split('-')[1] ?? null,
  }
}
