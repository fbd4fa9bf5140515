import { z } from 'zod'
import type { JobRecord } from '../../core/engine/job/job.js'
import { type JobPage, mostCounted } from '../../core/engine/ports/job-store.js'
import { readSlices } from '../../core/engine/queries/job-slices.js'
import { givenWords } from '../../core/engine/workflow/issue-words.js'
import type { KeyedCall } from '../routing/call.js'
import { invalidField, Problem } from '../routing/problem.js'
import { jobQueryOf, queryFilters } from './filter-params.js'
import { jobView } from './job-view.js'

/** A whole number as a query parameter. */
export const wholeNumber = (min: number, max: number) =>
  z.preprocess(
    (value) => (typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value),
    z
      .int({ error: ({ input }) => `must be a whole number from ${min} to ${max}${givenWords(input)}` })
      .min(min)
      .max(max)
      .optional(),
  )

export const pageQuerySchema = z.strictObject({
  page: wholeNumber(0, 999_999_999).describe('Page, from 0.').meta({ default: 0 }),
  size: wholeNumber(1, 100).describe('Rows of a page.').meta({ default: 100 }),
})

/** Description of the `Link` header of a list. */
export const nextPageWords = 'The next page, with `rel="next"`; absent on the last one.'

/** Largest offset of a page: skipped rows are read, too. */
const deepestOffset = 10_000

const cursorForm = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:@(\d{1,15}))?$/i

export const jobListQuerySchema = pageQuerySchema.extend({
  ...queryFilters,
  after: z
    .string()
    .regex(cursorForm, 'must be the cursor of a Link header, or the id of a job')
    .optional()
    .describe(
      'Only jobs that come after this one in the list: a cursor that new jobs do not shift. The Link header ' +
        'contains the next one.',
    ),
})

export interface JobListing {
  /** The jobs as a JSON array, in the pieces that are sent: in one, megabytes would be copied and encoded at once. */
  json: readonly Uint8Array[]
  /** Matching jobs on all pages, counted up to `mostCounted`. */
  total: number
  /** Query of the next page; `undefined` on the last one. */
  next: URLSearchParams | undefined
}

/** A list counts as one more request per piece of this size. */
const chargedBytes = 64 * 1024
/** A piece ends before the row that would exceed this. A buffer for each row would fragment memory. */
const pieceChars = 64 * 1024

/**
 * One page of the caller's jobs, newest first, within `limits.listBytes`. A short page would hide jobs from clients
 * that count rows instead of following the Link header, so a page that is too large is refused; a page of one row never
 * is.
 *
 * @throws Problem `BAD_INPUT` that says which size fits, or for a page number that is too high; `RATE_LIMITED` if
 * earlier lists have used up the rate meanwhile.
 */
export async function listJobs(call: KeyedCall, query: z.output<typeof jobListQuerySchema>): Promise<JobListing> {
  const { queries, limiter } = call.service
  const app = call.caller.id
  const list = async () => {
    limiter.refuseDebtor(app, 'other')
    const page = new Page(call, query.size ?? 100)
    try {
      return await page.read(query)
    } finally {
      limiter.charge(app, 'other', Math.floor(page.bytes / chargedBytes))
    }
  }
  return await queries.request(app, list, call.request.signal)
}

class Page {
  readonly #call: KeyedCall
  readonly #size: number
  readonly #pieces: Buffer[] = []
  #rows = 0
  /** Text of the next piece. */
  #text = ''
  /** Bytes of the rows so far, with the brackets and commas. */
  bytes = 2

  constructor(call: KeyedCall, size: number) {
    this.#call = call
    this.#size = size
  }

  async read(query: z.output<typeof jobListQuerySchema>): Promise<JobListing> {
    const { engine, queries } = this.#call.service
    if ((query.page ?? 0) * this.#size > deepestOffset) throw tooFarDown(this.#size)
    const app = this.#call.caller.id
    const filters = { ...jobQueryOf(query, engine.workflows), app }
    let total: number | undefined
    const after = query.after === undefined ? undefined : await cursor(this.#call, query.after)
    const offset = (query.page ?? 0) * this.#size
    let last: JobRecord | undefined
    let hasMore = false
    await readSlices(
      // One extra row shows whether there are more.
      { ...filters, limit: this.#size + 1, offset, after },
      async (page) => {
        // Counted while the first rows are read, which saves a round trip to the store.
        const counting = total ?? engine.count(filters, { max: mostCounted })
        const [jobs, count] = await Promise.all([engine.list(page), counting])
        total = count
        return jobs
      },
      async (jobs) => {
        const rows = jobs.slice(0, this.#size - this.#rows)
        hasMore ||= rows.length < jobs.length
        for (const job of rows) await this.#add(job)
        last = rows.at(-1) ?? last
      },
      (work) => queries.slice(app, work),
    )
    this.#close()
    const next = hasMore && last ? nextQuery(this.#call.search, last) : undefined
    return { json: this.#pieces, total: total ?? 0, next }
  }

  async #add(job: JobRecord): Promise<void> {
    const { listBytes } = this.#call.service.options.limits
    const row = JSON.stringify(await jobView(job, this.#call))
    this.bytes += Buffer.byteLength(row) + 1
    if (this.bytes > listBytes && this.#rows > 0) throw tooLargePage(this.#rows, listBytes)
    if (this.#text.length + row.length >= pieceChars) this.#cut()
    this.#text += (this.#rows++ === 0 ? '[' : ',') + row
  }

  #close(): void {
    this.#text += this.#rows === 0 ? '[]' : ']'
    this.#cut()
  }

  #cut(): void {
    if (this.#text !== '') this.#pieces.push(Buffer.from(this.#text))
    this.#text = ''
  }
}

function tooFarDown(size: number): Problem {
  return invalidField(
    'page',
    `must be at most ${Math.floor(deepestOffset / size)} with size=${size}; follow the Link header to ` +
      'reach further jobs, or filter with createdBefore',
  )
}

function tooLargePage(fitting: number, listBytes: number): Problem {
  const message =
    `a page may have at most ${listBytes} bytes, and these jobs are large: use size=${fitting} and ` +
    'follow the Link header'
  return new Problem('BAD_INPUT', `The list is too large to send. size: ${message}.`, {
    issues: [{ path: 'size', message }],
  })
}

function nextQuery(search: URLSearchParams, last: JobRecord): URLSearchParams {
  const next = new URLSearchParams(search)
  next.delete('page')
  // With its time, the cursor outlives the job: clients may delete the jobs of a page before they request the next one.
  next.set('after', `${last.id}@${last.createdAt}`)
  return next
}

async function cursor(call: KeyedCall, text: string): Promise<JobPage['after']> {
  const [, id = '', createdAt] = cursorForm.exec(text) ?? []
  if (createdAt !== undefined) return { id, createdAt: Number(createdAt) }
  const job = await call.service.engine.get(id, { app: call.caller.id })
  if (job) return { id, createdAt: job.createdAt }
  throw invalidField(
    'after',
    'names a job that does not exist (any more); follow the Link header instead, which does not need it',
  )
}
