import { z } from 'zod'
import { bulk, type BulkAction, hasNoRoom, possibleStatuses } from '../../core/engine/bulk.js'
import { type JobRecord, type JobStatus, jobStatusSchema } from '../../core/engine/job/job.js'
import { labelsOf } from '../../core/engine/job/pool.js'
import type { HttpEngine } from '../http-engine.js'
import type { BulkFacts, JobFacts, JobPage, JobRow } from './answers.js'

const cursorForm = /^(\d{1,15})@([0-9a-f-]{36})$/i
const idForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const pageSize = 50
/** Jobs that are looked at for a text that no index has. */
const mostLooked = 2_000
const readSize = 200

export const jobSearchSchema = z.object({
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
  const { jobs, next, looked } = await findJobs(engine, query, query.status && [query.status])
  return { jobs: jobs.map(jobRow), next, looked }
}

/** Does it to a page of the jobs that the search shows and to which it can be done. Go on with `after: next`. */
export async function actOnFound(engine: HttpEngine, action: BulkAction, query: JobSearch): Promise<BulkFacts> {
  const statuses = possibleStatuses(action, query.status && [query.status])
  const { jobs, next } = await findJobs(engine, query, statuses)
  const report = await bulk(
    action,
    { statuses },
    { limit: pageSize },
    {
      // An id is found in any state.
      list: (page) => Promise.resolve(jobs.filter(({ status }) => page.statuses?.includes(status) ?? true)),
      act: ({ id }) => engine[action](id),
    },
  )
  return { done: report.done, refused: report.refused, next, isFull: hasNoRoom(report) }
}

interface Found {
  jobs: JobRecord[]
  next: string | null
  looked: number | null
}

async function findJobs(
  engine: HttpEngine,
  query: JobSearch,
  statuses: readonly JobStatus[] | undefined,
): Promise<Found> {
  const { workflow, app, after } = query
  const text = query.text?.trim() ?? ''
  if (idForm.test(text)) {
    const job = await engine.get(text)
    return { jobs: job ? [job] : [], next: null, looked: null }
  }
  const filters = { statuses, workflows: workflow === undefined ? undefined : [workflow], app }
  let cursor = cursorOf(after)
  if (text === '') {
    const found = await engine.list({ ...filters, after: cursor, limit: pageSize + 1 })
    const jobs = found.slice(0, pageSize)
    return { jobs, next: nextOf(jobs, found.length > pageSize), looked: null }
  }
  const jobs: JobRecord[] = []
  for (let looked = 0; ; looked += readSize) {
    const read = await engine.list({ ...filters, after: cursor, limit: readSize })
    for (const [index, job] of read.entries()) {
      if (matches(job, text.toLowerCase())) jobs.push(job)
      if (jobs.length === pageSize) return { jobs, next: nextOf(jobs, true), looked: looked + index + 1 }
    }
    const isAll = read.length < readSize
    if (isAll || looked + readSize >= mostLooked)
      return { jobs, next: nextOf(read, !isAll), looked: looked + read.length }
    cursor = read.at(-1)
  }
}

function matches({ id, name, batchName, error, failure, workflow }: JobRecord, text: string): boolean {
  const texts = [id, name, batchName, workflow, error?.code, error?.reason, error?.message, failure]
  return texts.some((each) => each?.toLowerCase().includes(text))
}

function cursorOf(text: string | undefined): { createdAt: number; id: string } | undefined {
  const [, createdAt, id] = cursorForm.exec(text ?? '') ?? []
  return id === undefined ? undefined : { createdAt: Number(createdAt), id }
}

function nextOf(jobs: readonly JobRecord[], hasMore: boolean): string | null {
  const last = hasMore ? jobs.at(-1) : undefined
  return last ? `${last.createdAt}@${last.id}` : null
}

function jobRow(job: JobRecord): JobRow {
  const { id, name, app, workflow, batchName, status, stage, progress, createdAt, startedAt, completedAt, error } = job
  const worker = job.lease?.owner ?? job.history.at(-1)?.worker ?? null
  const times = { createdAt, startedAt, completedAt }
  return { id, name, app, workflow, batchName, status, stage, progress, ...times, attempts: job.token, worker, error }
}

/** All that an operator may want to know of a job. */
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
    place: (job.status === 'QUEUED' ? await engine.place(job.id) : undefined) ?? null,
    waiting: (await engine.waiting(job)) ?? null,
    needs: labelsOf(job.pool),
    history: job.history,
    failure: job.failure,
    webhooks: job.deliveries.map(({ event, url, outcome, attempts, lastStatus, nextAttemptAt }) => {
      return { event, url, outcome, attempts, status: lastStatus, nextAt: nextAttemptAt }
    }),
    outputs: Object.entries(job.outputs ?? {}).map(([name, { fileName, bytes }]) => ({ name, fileName, bytes })),
    traceId: job.trace?.traceparent.split('-')[1] ?? null,
  }
}
