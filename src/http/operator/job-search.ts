import { z } from 'zod'
import type { BulkAction } from '../../core/engine/engine.js'
import { type JobRecord, jobStatusSchema } from '../../core/engine/job/job.js'
import { labelsOf } from '../../core/engine/job/pool.js'
import type { JobQuery } from '../../core/engine/ports/job-store.js'
import type { HttpEngine } from '../http-engine.js'
import { cursorForm, cursorOf, cursorText } from '../jobs/bulk-routes.js'
import type { BulkFacts, JobFacts, JobPage, JobRow } from './answers.js'

const pageSize = 50

export const jobSearchSchema = z.strictObject({
  status: jobStatusSchema.optional(),
  workflow: z.string().min(1).max(200).optional(),
  /** Id of an application. */
  app: z.string().min(1).max(128).optional(),
  /** An id, or words of a name and a batch. */
  text: z.string().max(255).optional(),
  /** A part of an error's code, reason, message or cause. */
  error: z.string().max(255).optional(),
  after: z.string().regex(cursorForm, 'must be a cursor of an earlier page').optional(),
})
export type JobSearch = z.output<typeof jobSearchSchema>

/** Jobs of all applications, newest first. */
export async function searchJobs(engine: HttpEngine, query: JobSearch): Promise<JobPage> {
  const where = whereOf(query)
  const { jobs, next, looked } = await engine.search(
    { ...filtersOf(query), limit: pageSize, after: cursorOf(query.after) },
    where,
  )
  return { jobs: jobs.map(jobRow), next: cursorText(next), looked: where ? looked : null }
}

/** Changes one page of the matching jobs that can be changed. Continue with `after: next`. */
export async function actOnFound(engine: HttpEngine, action: BulkAction, query: JobSearch): Promise<BulkFacts> {
  const page = { limit: pageSize, after: cursorOf(query.after), where: whereOf(query) }
  const { done, refused, next, isFull } = await engine.bulk(action, filtersOf(query), page)
  return { done, refused, next: cursorText(next), isFull }
}

function filtersOf({ status, workflow, app, text, error }: JobSearch): JobQuery {
  const statuses = error ? (['FAILED'] as const).filter((one) => !status || status === one) : status && [status]
  return {
    statuses,
    workflows: workflow === undefined ? undefined : [workflow],
    app,
    search: text?.trim() || undefined,
  }
}

/** The store searches the names; texts of errors are compared here. */
function whereOf({ error }: JobSearch): ((job: JobRecord) => boolean) | undefined {
  const text = error?.trim().toLowerCase()
  return text ? ({ error: shown, failure }) => errorTexts(shown, failure).includes(text) : undefined
}

function errorTexts(error: JobRecord['error'], failure: string | null): string {
  return [error?.code, error?.reason, error?.message, failure].join('\n').toLowerCase()
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
    webhooks: job.deliveries.map(({ event, url, outcome, attempts, lastStatus }) => {
      return { event, url, outcome, attempts, status: lastStatus }
    }),
    outputs: Object.entries(job.outputs ?? {}).map(([name, { fileName, bytes }]) => ({ name, fileName, bytes })),
    traceId: job.trace?.traceparent.split('-')[1] ?? null,
  }
}
