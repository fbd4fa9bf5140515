import { z } from 'zod'
import type { JobRecord } from '../../core/engine/job/job.js'
import { jobStatusSchema } from '../../core/engine/job/job.js'
import type { JobPage, JobQuery } from '../../core/engine/ports/job-store.js'
import type { KeyedCall } from '../routing/call.js'
import { Problem } from '../routing/problem.js'
import { jobView } from './job-view.js'
import { timestampSchema } from '../schemas.js'

const repeatable = <Item extends z.ZodType>(item: Item) =>
  z.preprocess((value) => (typeof value === 'string' ? [value] : value), z.array(item).max(100).optional())
const whole = (schema: z.ZodNumber) =>
  z.preprocess(
    (value) => (typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value),
    schema.optional(),
  )

export const pageQuerySchema = z.object({
  page: whole(z.int().min(0).max(999_999_999)).describe('Page, from 0.').meta({ default: 0 }),
  size: whole(z.int().min(1).max(100)).describe('Rows of a page.').meta({ default: 100 }),
})

/** The exact number of more is of use to nobody, and takes as long to find. */
export const mostCounted = 10_000
/** To skip rows is to read them. */
const deepestOffset = 10_000

const cursorForm = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:@(\d{1,15}))?$/i

export const jobListQuerySchema = pageQuerySchema.extend({
  status: repeatable(jobStatusSchema).describe('Only these statuses; may be repeated.'),
  workflow: repeatable(z.string().min(1).max(200)).describe('Only these workflows; may be repeated.'),
  batchName: z.string().min(1).max(255).optional().describe('Only jobs of this batch.'),
  createdAfter: timestampSchema.optional().describe('Only jobs created at this time or later.'),
  createdBefore: timestampSchema.optional().describe('Only jobs created before this time.'),
  after: z
    .string()
    .regex(cursorForm, 'must be a job id')
    .optional()
    .describe(
      'Only jobs that come after this one in the list: a cursor that new jobs do not shift. The Link header gives the next.',
    ),
})

export interface JobListing {
  jobs: JobRecord[]
  /** Jobs that pass the filters, on all pages, counted up to `mostCounted`. */
  total: number
  /** Query of the next page; `undefined` on the last one. */
  next: URLSearchParams | undefined
}

/**
 * One page of the caller's jobs, newest first.
 *
 * @throws Problem `BAD_INPUT` for a page further down than numbers reach.
 */
export async function listJobs(call: KeyedCall, query: z.output<typeof jobListQuerySchema>): Promise<JobListing> {
  const { engine } = call.service
  const { page = 0, size = 100 } = query
  if (page * size > deepestOffset) throw tooFarDown(size)
  const filters: JobQuery = {
    app: call.caller.id,
    statuses: query.status,
    workflows: query.workflow,
    batchName: query.batchName,
    createdAfter: query.createdAfter === undefined ? undefined : Date.parse(query.createdAfter),
    createdBefore: query.createdBefore === undefined ? undefined : Date.parse(query.createdBefore),
  }
  const after = query.after === undefined ? undefined : await cursor(call, query.after)
  // One row more than asked tells whether there is a next page.
  const rows: JobPage = { ...filters, limit: size + 1, offset: page * size, after }
  const [found, total] = await Promise.all([engine.list(rows), engine.count(filters, { max: mostCounted })])
  const jobs = found.slice(0, size)
  const last = found.length > size ? jobs.at(-1) : undefined
  return { jobs, total, next: last && nextQuery(call.search, last) }
}

/**
 * The jobs of a page as JSON, within `limits.listBytes`. A page that ended early would hide jobs from clients that count rows
 * instead of following the Link header, so a larger one is refused; a page of one row never is.
 *
 * @throws Problem `BAD_INPUT` that says which size fits.
 */
export async function boundedPage(call: KeyedCall, jobs: readonly JobRecord[]): Promise<string> {
  const { listBytes } = call.service.options.limits
  const rows: string[] = []
  let bytes = 2
  for (const job of jobs) {
    const row = JSON.stringify(await jobView(job, call))
    bytes += Buffer.byteLength(row) + 1
    if (bytes > listBytes && jobs.length > 1) throw tooLargePage(Math.max(rows.length, 1), listBytes)
    rows.push(row)
  }
  return `[${rows.join(',')}]`
}

function tooFarDown(size: number): Problem {
  const message = `must be at most ${Math.floor(deepestOffset / size)} with size=${size}; follow the Link header to jobs further down, or ask for a time with createdBefore`
  return new Problem('BAD_INPUT', `The request is not valid. page: ${message}.`, {
    issues: [{ path: 'page', message }],
  })
}

function tooLargePage(fitting: number, listBytes: number): Problem {
  const message = `a page may have at most ${listBytes} bytes, and these jobs are large: ask for size=${fitting} and follow the Link header`
  return new Problem('BAD_INPUT', `The list is too large to send. size: ${message}.`, {
    issues: [{ path: 'size', message }],
  })
}

function nextQuery(search: URLSearchParams, last: JobRecord): URLSearchParams {
  const next = new URLSearchParams(search)
  next.delete('page')
  // With its time, the cursor outlives the job: clients may delete the jobs of a page before they ask for the next.
  next.set('after', `${last.id}@${last.createdAt}`)
  return next
}

async function cursor(call: KeyedCall, text: string): Promise<JobPage['after']> {
  const [, id = '', createdAt] = cursorForm.exec(text) ?? []
  if (createdAt !== undefined) return { id, createdAt: Number(createdAt) }
  const job = await call.service.engine.get(id, { app: call.caller.id })
  if (job) return { id, createdAt: job.createdAt }
  const message = 'names a job that does not exist (any more); follow the Link header instead, which does not need it'
  throw new Problem('BAD_INPUT', `The request is not valid. after: ${message}.`, {
    issues: [{ path: 'after', message }],
  })
}
