import { jobStatusSchema } from '../../../core/engine/job/job.js'
import type { DueKind, JobPage, JobQuery } from '../../../core/engine/ports/job-store.js'
import { columnText, nowSql } from './job-row.js'

export interface Statement {
  text: string
  values: unknown[]
}

const newestFirst = 'ORDER BY created_at DESC, id DESC'

/** `undefined` for a query that no job can match. */
export function listStatement(schema: string, { limit, offset = 0, after, ...query }: JobPage): Statement | undefined {
  if (limit <= 0) return undefined
  const conditions = conditionsOf(query)
  if (!conditions) return undefined
  const { where, values } = conditions
  if (after) where.push(`(created_at, id) < ($${values.push(after.createdAt)}, $${values.push(columnText(after.id))})`)
  const select = (more: string[]) =>
    `SELECT record, claims, created_at, id FROM ${schema}.jobs WHERE ${[...where, ...more].join(' AND ')}`
  const page = `${newestFirst} LIMIT $${values.push(limit)} OFFSET $${values.push(offset)}`
  if (query.app === undefined || query.batchName !== undefined || query.uploadKey !== undefined) {
    return { text: `${select(query.statuses ? [statusIn(query.statuses)] : [])} ${page}`, values }
  }
  // The index of an application's jobs begins with the status: each status is a sorted list of its own, and the first rows of
  // each hold the page. So a page of a rare status costs no more than any other.
  const first = `${newestFirst} LIMIT $${values.push(limit + offset)}`
  const lists = [...new Set(query.statuses ?? jobStatusSchema.options)].map(
    (status) => `(${select([`status = '${status}'`])} ${first})`,
  )
  return { text: `SELECT record, claims FROM (${lists.join(' UNION ALL ')}) AS jobs ${page}`, values }
}

export function countStatement(schema: string, query: JobQuery): Statement | undefined {
  const conditions = conditionsOf(query)
  if (!conditions) return undefined
  if (query.statuses) conditions.where.push(statusIn(query.statuses))
  return {
    text: `SELECT count(*) FROM ${schema}.jobs WHERE ${conditions.where.join(' AND ')}`,
    values: conditions.values,
  }
}

/** Rows of `version, record, claims, id`. */
export function dueStatement(
  schema: string,
  kind: DueKind,
  limit: number,
  exceptApps: readonly string[],
  exceptIds: readonly string[],
): Statement {
  const jobs = `SELECT version, record, claims, id FROM ${schema}.jobs WHERE app <> ALL($2::text[]) AND id <> ALL($3::text[]) AND`
  const values = [limit, exceptApps.map((app) => columnText(app)), exceptIds]
  switch (kind) {
    case 'lapsed':
      return { text: `${jobs} ${lapsedSql} LIMIT $1`, values }
    case 'deleted':
      return { text: `${jobs} deleted LIMIT $1`, values }
    case 'expired':
      return { text: `${jobs} removable_at <= ${nowSql} ORDER BY removable_at LIMIT $1`, values }
    case 'deliverable':
      return { text: `${jobs} deliverable_at <= ${nowSql} ORDER BY deliverable_at LIMIT $1`, values }
    default:
      return kind satisfies never
  }
}

/** Started jobs whose lease ran out, earliest first. */
export const lapsedSql = `status = 'STARTED' AND NOT deleted AND coalesce(lease_until, 0) <= ${nowSql} ORDER BY coalesce(lease_until, 0), id`

/** All conditions but that on the status. */
function conditionsOf({
  app,
  statuses,
  workflows,
  batchName,
  createdAfter,
  createdBefore,
  uploadKey,
}: JobQuery): { where: string[]; values: unknown[] } | undefined {
  if (statuses?.length === 0 || workflows?.length === 0) return undefined
  const values: unknown[] = []
  const where = ['NOT deleted']
  if (app !== undefined) where.push(`app = $${values.push(columnText(app))}`)
  if (workflows !== undefined)
    where.push(`workflow = ANY($${values.push(workflows.map((workflow) => columnText(workflow)))}::text[])`)
  if (batchName !== undefined) where.push(`batch_name = $${values.push(columnText(batchName))}`)
  if (createdAfter !== undefined) where.push(`created_at >= $${values.push(createdAfter)}`)
  if (createdBefore !== undefined) where.push(`created_at < $${values.push(createdBefore)}`)
  if (uploadKey !== undefined) where.push(`upload_keys @> ARRAY[$${values.push(columnText(uploadKey))}]::text[]`)
  return { where, values }
}

/** Written out, not as a parameter, so that the planner can use indexes that hold one status only. */
function statusIn(statuses: NonNullable<JobQuery['statuses']>): string {
  return `status IN (${statuses.map((status) => `'${jobStatusSchema.parse(status)}'`).join(', ')})`
}
