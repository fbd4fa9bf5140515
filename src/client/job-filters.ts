import type { JobStatus } from './job.js'

export interface JobFilters {
  status?: JobStatus | readonly JobStatus[]
  workflow?: string | readonly string[]
  batchName?: string
  /** Only jobs created at this time or later. */
  createdAfter?: Date | string
  /** Only jobs created before this time. */
  createdBefore?: Date | string
  /** Only jobs that ended at this time or later. */
  completedAfter?: Date | string
  /** Only jobs that ended before this time. */
  completedBefore?: Date | string
  /** Only jobs whose name and batch name contain all of these words; case, accents and quotation marks are alike. */
  search?: string
  /** Jobs of a page, 1 to 100. Default: 100. */
  size?: number
  /** `next` of the previous page. */
  cursor?: string
}

/** Jobs that a bulk request applies to: a filter, or `all`. */
export interface JobFilter {
  status?: readonly JobStatus[]
  workflow?: readonly string[]
  batchName?: string
  createdAfter?: string
  createdBefore?: string
  completedAfter?: string
  completedBefore?: string
  search?: string
  all?: true
  /** Jobs that one request examines. Default: 100, at most 1,000. */
  limit?: number
  /** `next` of the previous answer. */
  after?: string
}

/** Passes an invalid time on, so that the service refuses it with a message. */
const timeText = (time: Date | string) => (isNaN(+new Date(time)) ? String(time) : new Date(time).toISOString())

/** Query values of each filter. */
const params: { [Name in keyof JobFilters]-?: (value: NonNullable<JobFilters[Name]>) => readonly string[] } = {
  status: (statuses) => [statuses].flat(),
  workflow: (workflows) => [workflows].flat(),
  batchName: (name) => [name],
  createdAfter: (time) => [timeText(time)],
  createdBefore: (time) => [timeText(time)],
  completedAfter: (time) => [timeText(time)],
  completedBefore: (time) => [timeText(time)],
  search: (words) => [words],
  size: (rows) => [String(rows)],
  cursor: (after) => [after],
}

export function listQuery(filters: JobFilters): URLSearchParams {
  const query = new URLSearchParams()
  for (const name of Object.keys(params) as (keyof JobFilters)[]) {
    const value = filters[name]
    if (value === undefined) continue
    for (const text of (params[name] as (value: unknown) => readonly string[])(value))
      query.append(name === 'cursor' ? 'after' : name, text)
  }
  return query
}
