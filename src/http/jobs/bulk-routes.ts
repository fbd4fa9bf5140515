import { z } from 'zod'
import type { BulkAction } from '../../core/engine/engine.js'
import { searchWords } from '../../core/engine/job/search-text.js'
import { json } from '../routing/answer.js'
import { invalidField, Problem } from '../routing/problem.js'
import { defineRoute } from '../routing/route.js'
import { bodyFilters, jobQueryOf } from './filter-params.js'

/** Text form of the cursor of an action on many jobs. */
export const cursorForm = /^(\d{1,16})@([0-9a-f-]{0,36})$/i

/** Fields that say which jobs are meant; a request needs at least one. */
const decisive = [...Object.keys(bodyFilters), 'all']

export const jobFilterSchema = z
  .strictObject({
    ...bodyFilters,
    all: z.literal(true).optional().describe('Instead of a filter: every job of the application.'),
    limit: z.int().min(1).max(1000).optional().describe('Most jobs that this request processes. Default: 100.'),
    after: z
      .string()
      .regex(cursorForm, 'must be `next` of a response')
      .optional()
      .describe('`next` of the previous response.'),
  })
  // For readers of the OpenAPI document: at least one filter, or all.
  .meta({ id: 'JobFilter', if: { anyOf: decisive.map((name) => ({ required: [name] })) }, else: { not: {} } })

export const bulkReportSchema = z
  .object({
    done: z.int().describe('Jobs that were changed.'),
    refused: z.array(z.object({ id: z.uuid(), code: z.string(), message: z.string() })),
    next: z.string().nullable().describe('Send it as `after` to continue; null when all jobs were seen.'),
  })
  .meta({ id: 'BulkReport' })

const actions: { action: BulkAction; summary: string; description: string }[] = [
  {
    action: 'cancel',
    summary: 'Cancel matching jobs',
    description: 'Waiting jobs become FAILED with the code CANCELED, running ones as soon as they are stopped.',
  },
  {
    action: 'retry',
    summary: 'Retry matching failed jobs',
    description:
      'Retries each as `POST /job/{id}/retry` does. Stops when there is no room for more jobs; continue from ' +
      '`next` later.',
  },
  {
    action: 'delete',
    summary: 'Delete matching jobs',
    description: 'In any state, with all their files.',
  },
]

export function cursorOf(text = ''): { createdAt: number; id: string } | undefined {
  const [, createdAt, id] = cursorForm.exec(text) ?? []
  return id === undefined ? undefined : { createdAt: Number(createdAt), id }
}

export function cursorText(next: { createdAt: number; id: string } | undefined): string | null {
  return next ? `${next.createdAt}@${next.id}` : null
}

/** A search without words matches every job: a request meant for some would delete them all. */
function refuseSearchWithoutWords(search: string | undefined): void {
  if (search === undefined || searchWords(search).length > 0) return
  throw invalidField('search', 'must have a word; leave it out to mean jobs of any name')
}

export const bulkRoutes = actions.map(({ action, summary, description }) =>
  defineRoute({
    route: `POST /job/${action}`,
    operation: `${action}Jobs`,
    summary,
    description:
      `${description} Newest first, at most \`limit\` at a time; an interrupted request may be repeated. ` +
      'It counts as one request per 10 jobs against the rate limit.',
    body: jobFilterSchema,
    answer: { description: 'The result of the request.', schema: bulkReportSchema },
    async handle(call, { body }) {
      const { engine, limiter, queries } = call.service
      const app = call.caller.id
      const { all, limit = 100, after } = body
      const filters = jobQueryOf(body, engine.workflows)
      if (all !== true && Object.values(filters).every((filter) => filter === undefined))
        throw new Problem(
          'BAD_INPUT',
          'Name at least one filter, or send all: true for every job of the application.',
          { issues: [{ path: 'all', message: 'must be true if there is no filter' }] },
        )
      refuseSearchWithoutWords(filters.search)
      const bulk = async () => {
        limiter.refuseDebtor(app, 'other')
        const options = {
          limit,
          after: cursorOf(after),
          turn: <Result>(work: () => Promise<Result>) => queries.slice(app, work),
        }
        const made = await engine.bulk(action, { ...filters, app }, options)
        limiter.charge(app, 'other', Math.floor(made.done / 10))
        return made
      }
      const report = await queries.request(app, bulk, call.request.signal)
      const { done, refused, next } = report
      return json({ done, refused, next: cursorText(next) })
    },
  }),
)
