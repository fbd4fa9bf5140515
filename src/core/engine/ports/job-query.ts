import { z } from 'zod'
import { type JobRecord, type JobStatus, jobStatusSchema } from '../job/job.js'
import { searchText, searchWords } from '../job/search-text.js'

/** Filters of a list, which shows jobs that match every given field. Deleted jobs are never shown. */
export interface JobQuery {
  app?: string
  /** Any of these statuses; an empty list matches no job. */
  statuses?: readonly JobStatus[]
  /** Any of these workflows; an empty list matches no job. */
  workflows?: readonly string[]
  batchName?: string
  /** Epoch milliseconds, inclusive. */
  createdAfter?: number
  /** Epoch milliseconds, exclusive. */
  createdBefore?: number
  /** Epoch milliseconds, inclusive: jobs that ended then or later. */
  completedAfter?: number
  /** Epoch milliseconds, exclusive: jobs that ended earlier. */
  completedBefore?: number
  /** Jobs with this blob key as an input. */
  uploadKey?: string
  /** Jobs whose name and batch have all of these words (`searchText`, `searchWords`), or whose id is one of them. */
  search?: string
}

/** A table with an entry for each filter. A store that uses one for its conditions cannot ignore a filter. */
export type ByFilter<Result> = { [Field in keyof JobQuery]-?: (value: NonNullable<JobQuery[Field]>) => Result }

/** Applies the table's functions to the filters of a query. */
export function eachFilter<Result>(query: JobQuery, table: ByFilter<Result>): Result[] {
  const fields = Object.keys(table) as (keyof JobQuery)[]
  return fields.flatMap((field) => {
    const value = query[field]
    return value === undefined ? [] : [(table[field] as (value: unknown) => Result)(value)]
  })
}

/** Fields of a job that the filters use. */
export const filteredFields = [
  'id',
  'name',
  'app',
  'status',
  'workflow',
  'batchName',
  'createdAt',
  'completedAt',
  'uploads',
] as const satisfies readonly (keyof JobRecord)[]
export type FilteredJob = Pick<JobRecord, (typeof filteredFields)[number]>

/** Param of HTTP requests for a filter. A `time` is ISO 8601 text; a `list` may be repeated in a query. */
type FilterParam<Name extends string> = { name: Name; description: string } & (
  | { form: 'time' }
  /** `schema`: of the text, or of an item of the list. */
  | { form: 'text' | 'list'; schema: z.ZodType }
)

interface JobFilter<Value> {
  schema: z.ZodType<Value>
  matches(value: Value): (job: FilteredJob) => boolean
  /** Absent: no request can set it. */
  param?: FilterParam<string>
}

/**
 * All filters of lists: the engine checks queries against them, stores in memory select by them, and HTTP and OpenAPI
 * derive their params from them.
 */
export const jobFilters = {
  app: {
    schema: z.string(),
    matches: (app) => (job) => job.app === app,
  },
  statuses: {
    schema: z.array(jobStatusSchema).readonly(),
    matches: (statuses) => (job) => statuses.includes(job.status),
    param: list('status', jobStatusSchema, 'Only these statuses'),
  },
  workflows: {
    schema: z.array(z.string()).readonly(),
    matches: (workflows) => (job) => workflows.includes(job.workflow),
    param: list('workflow', z.string().min(1).max(200), 'Only these workflows'),
  },
  batchName: {
    schema: z.string(),
    matches: (name) => (job) => job.batchName === name,
    param: text('batchName', 255, 'Only jobs of this batch'),
  },
  createdAfter: {
    schema: z.number(),
    matches: (time) => (job) => job.createdAt >= time,
    param: time('createdAfter', 'Only jobs created at this time or later'),
  },
  createdBefore: {
    schema: z.number(),
    matches: (time) => (job) => job.createdAt < time,
    param: time('createdBefore', 'Only jobs created before this time'),
  },
  completedAfter: {
    schema: z.number(),
    matches: (time) => (job) => job.completedAt !== null && job.completedAt >= time,
    param: time('completedAfter', 'Only jobs that ended at this time or later'),
  },
  completedBefore: {
    schema: z.number(),
    matches: (time) => (job) => job.completedAt !== null && job.completedAt < time,
    param: time('completedBefore', 'Only jobs that ended before this time'),
  },
  uploadKey: {
    schema: z.string(),
    matches: (key) => (job) => Object.values(job.uploads).includes(key),
  },
  search: {
    schema: z.string(),
    matches(search) {
      const words = searchWords(search)
      return (job) => words.every((word) => job.id === word || textOf(job).includes(word))
    },
    param: text(
      'search',
      255,
      'Only jobs whose name and batch name contain all of these words, in any order, or whose id is one of them. ' +
        'Case, accents and the form of quotation marks make no difference: `lodz` finds `Łódź`',
    ),
  },
} satisfies { [Field in keyof JobQuery]-?: JobFilter<NonNullable<JobQuery[Field]>> }

const matchers = Object.fromEntries(
  Object.entries(jobFilters).map(([field, { matches }]) => [field, matches]),
) as unknown as ByFilter<(job: FilteredJob) => boolean>

/** Cache, because folding takes longer than the search. Valid, because stores replace a changed job's object. */
const texts = new WeakMap<FilteredJob, string>()

function textOf(job: FilteredJob): string {
  let known = texts.get(job)
  if (known === undefined) texts.set(job, (known = searchText(job)))
  return known
}

/** Makes a function that reports whether a job matches every filter of the query. */
export function matcherOf(query: JobQuery): (job: FilteredJob) => boolean {
  const tests = eachFilter(query, matchers)
  return (job) => tests.every((matches) => matches(job))
}

function list<const Name extends string>(name: Name, schema: z.ZodType, description: string): FilterParam<Name> {
  return { name, form: 'list', schema, description }
}

function text<const Name extends string>(name: Name, maxLength: number, description: string): FilterParam<Name> {
  return { name, form: 'text', schema: z.string().min(1).max(maxLength), description }
}

function time<const Name extends string>(name: Name, description: string): FilterParam<Name> {
  return { name, form: 'time', description }
}
