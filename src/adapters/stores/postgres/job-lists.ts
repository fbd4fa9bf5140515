import { jobStatusSchema } from '../../../core/engine/job/job.js'
import { ordinaryRecordBytes } from '../../../core/engine/job/record-bytes.js'
import { searchWords } from '../../../core/engine/job/search-text.js'
import { type ByFilter, eachFilter, type JobQuery } from '../../../core/engine/ports/job-query.js'
import type { DeliverablePage, DueReason, JobPage } from '../../../core/engine/ports/job-store.js'
import { distinctRows } from './distinct-rows.js'
import { columnText, leaseBucketMs, nowSql, readableSql } from './job-row.js'

export interface Statement {
  text: string
  values: unknown[]
  /** Whether the text is one of a few. Preparing rare ones would fill the memory of the server's connections. */
  isCommon?: boolean
}

/** Adds a value to a statement and returns its parameter. */
type Param = (value: unknown) => string

/** Key of the index of all jobs. Queries of one application do not match it, so they read no jobs of others. */
const timeOfAll = 'created_at + 0'

/** @param app of the same query: which indexes are searched depends on it */
function conditions(param: Param, app: string | undefined): ByFilter<string> {
  return {
    app: (name) => `app = ${param(columnText(name))}`,
    statuses: (statuses) => statusIn(statuses, app),
    workflows: (workflows) => `workflow = ANY(${param(textsOf(workflows))}::text[])`,
    batchName: (name) => `batch_name = ${param(columnText(name))}`,
    // Columns have whole milliseconds, so rounding up selects the same jobs.
    createdAfter: (time) => `created_at >= ${param(Math.ceil(time))}`,
    createdBefore: (time) => `created_at < ${param(Math.ceil(time))}`,
    completedAfter: (time) => `ended_at >= ${param(Math.ceil(time))}`,
    completedBefore: (time) => `ended_at < ${param(Math.ceil(time))}`,
    uploadKey: (key) => `upload_keys @> ARRAY[${param(columnText(key))}]::text[]`,
    search: (search) =>
      searchWords(search)
        .map(param)
        .map((word) => `(strpos(search, ${word}) > 0 OR id = ${word})`)
        .join(' AND ') || 'true',
  }
}

/** Rows of `version, record, claims, id`; `undefined` for a query that no job can match. */
export function listStatement(
  schema: string,
  { limit, offset = 0, after, ...query }: JobPage,
  exceptIds: readonly string[] = [],
): Statement | undefined {
  if (limit <= 0 || isEmpty(query)) return undefined
  const { statuses: _statuses, workflows: _workflows, ...rest } = query
  const { app, uploadKey, batchName } = query
  const isByList = (app ?? batchName) !== undefined && uploadKey === undefined
  const values: unknown[] = []
  const param: Param = (value) => `$${values.push(value)}`
  const time = isByList ? 'created_at' : timeOfAll
  const where = ['NOT deleted', ...eachFilter(isByList ? rest : query, conditions(param, app))]
  if (after) where.push(`(${time}, id) < (${param(after.createdAt)}, ${param(columnText(after.id))})`)
  if (exceptIds.length > 0) where.push(`id <> ALL(${param(exceptIds)}::text[])`)
  const newestFirst = `ORDER BY ${time} DESC, id DESC`
  const page = `${newestFirst} LIMIT ${param(limit)} OFFSET ${param(offset)}`
  if (!isByList)
    return {
      text: `SELECT version, record, claims, id FROM ${schema}.jobs WHERE ${where.join(' AND ')} ${page}`,
      values,
      isCommon: isCommon(query),
    }
  const { lists, conditions: ofLists } = sortedLists(schema, query, param)
  where.push(...ofLists)
  const first = `SELECT id, created_at FROM ${schema}.jobs WHERE ${where.join(' AND ')} ${newestFirst}
    LIMIT ${param(limit + offset)}`
  return { text: pageOfLists(schema, { lists, first, page }), values, isCommon: isCommon(query) }
}

/**
 * The index of an application's jobs has the status and the workflow before the time: each pair is a sorted list, and
 * the first rows of each list hold the page. So a page of a rare status or workflow costs no more than any other.
 */
function sortedLists(schema: string, { app, statuses, workflows, batchName }: JobQuery, param: Param) {
  const ofStatuses = statuses && param([...new Set(statuses)])
  if (app !== undefined && batchName === undefined && !workflows) {
    const all = distinctRows(`${schema}.jobs WHERE NOT deleted AND app = ${param(columnText(app))}`, listColumns)
    return {
      lists: [`(${all}${ofStatuses ? ` WHERE status = ANY(${ofStatuses}::text[])` : ''}) AS list`],
      conditions: ['status = list.status', 'workflow = list.workflow'],
    }
  }
  const lists = [`unnest(${ofStatuses ?? param(jobStatusSchema.options)}::text[]) AS list(status)`]
  const conditions = ['status = list.status']
  if (app === undefined) {
    lists.push(`(${appsWithBatches(schema)}) AS owner`)
    conditions.push('app = owner.app')
  }
  if (workflows) {
    lists.push(`unnest(${param(textsOf(workflows))}::text[]) AS wanted(workflow)`)
    conditions.push('workflow = wanted.workflow')
  }
  return { lists, conditions }
}

/** Columns of the index after the application. */
const listColumns = ['status', 'workflow']

function pageOfLists(
  schema: string,
  { lists, first, page }: { lists: readonly string[]; first: string; page: string },
): string {
  return `
    SELECT version, record, claims, id FROM (
      SELECT found.id, found.created_at
      FROM ${[...lists, `LATERAL (${first}) AS found`].join(' CROSS JOIN ')} ${page}
    ) AS page JOIN ${schema}.jobs USING (id) ORDER BY page.created_at DESC, page.id DESC`
}

/** @param max where the count ends; it looks at no more jobs than that */
export function countStatement(schema: string, query: JobQuery, max = Infinity): Statement | undefined {
  if (isEmpty(query)) return undefined
  const values: unknown[] = []
  const param: Param = (value) => `$${values.push(value)}`
  // With the application, the status narrows the search in its indexes to a range even where it excludes nothing.
  const isNarrowed = query.app !== undefined && query.search === undefined
  const statuses = query.statuses ?? (isNarrowed ? jobStatusSchema.options : undefined)
  const where = ['NOT deleted', ...eachFilter({ ...query, statuses }, conditions(param, query.app))]
  if (query.app === undefined && query.batchName !== undefined)
    where.push(`app = ANY(ARRAY(${appsWithBatches(schema)}))`)
  const jobs = `FROM ${schema}.jobs WHERE ${where.join(' AND ')}`
  const text =
    max === Infinity
      ? `SELECT count(*) ${jobs}`
      : `SELECT count(*) FROM (SELECT ${jobs} LIMIT ${param(max)}) AS counted`
  return { text, values, isCommon: isCommon(query) }
}

function isCommon({ app: _app, statuses: _statuses, workflows: _workflows, ...rare }: JobQuery): boolean {
  return Object.values(rare).every((value) => value === undefined)
}

/** Rows of `version, record, claims, id`. */
export function dueStatement(
  schema: string,
  reason: DueReason,
  limit: number,
  exceptIds: readonly string[],
): Statement {
  const jobs = `SELECT version, record, claims, id FROM ${schema}.jobs WHERE id <> ALL($2::text[])`
  return { text: `${jobs} AND ${dueConditions[reason]} LIMIT $1`, values: [limit, exceptIds], isCommon: true }
}

/**
 * Rows of `version, record, claims, id`. Skips from application to application in the index, so that jobs of unwanted
 * applications cost nothing.
 */
export function deliverableStatement(
  schema: string,
  { limit, perApp, exceptApps }: DeliverablePage,
  exceptIds: readonly string[],
): Statement {
  const apps = appsOf(schema, 'deliverable_at IS NOT NULL')
  return {
    text: `
      SELECT version, record, claims, id FROM (${apps}) AS apps CROSS JOIN LATERAL (
        SELECT version, record, claims, id, deliverable_at FROM ${schema}.jobs
        WHERE jobs.app = apps.app AND deliverable_at <= ${nowSql} AND id <> ALL($4::text[])
        ORDER BY deliverable_at LIMIT $2
      ) AS due
      WHERE apps.app <> ALL($3::text[]) ORDER BY deliverable_at LIMIT $1`,
    values: [limit, perApp, exceptApps.map((app) => columnText(app)), exceptIds],
    isCommon: true,
  }
}

/** A query for the applications of such jobs, by an index that begins with the application. */
function appsOf(schema: string, condition: string): string {
  return distinctRows(`${schema}.jobs WHERE ${condition}`, ['app'])
}

/** The index of batches begins with the application. */
function appsWithBatches(schema: string): string {
  return appsOf(schema, 'NOT deleted AND batch_name IS NOT NULL')
}

/** Started jobs whose lease ran out by `time`: the bucket is for the index, the time itself decides. */
export function lapsedBy(time: string): string {
  return `lease_bucket <= ${time} / ${leaseBucketMs} AND coalesce(lease_until, 0) <= ${time}`
}
const lapsedSql = lapsedBy(nowSql)
export const earliestLapsed = 'ORDER BY lease_bucket, lease_until NULLS FIRST, id'

const dueConditions: Record<DueReason, string> = {
  lapsed: `${lapsedSql} ${earliestLapsed}`,
  // As text: Postgres's functions for json refuse a record in which U+0000 is escaped. A match elsewhere in the record
  // does no harm, because the change does not apply.
  abandoned:
    `${lapsedSql} AND (deadline <= ${nowSql} OR record::text LIKE '%"cancelRequested":true%') ` + earliestLapsed,
  deleted: 'deleted',
  expired: `removable_at <= ${nowSql} ORDER BY removable_at`,
  overdue: `deadline <= ${nowSql} AND waiting_since IS NOT NULL ORDER BY deadline`,
}

/** Result bytes of the application in $1. */
export function resultBytesStatement(schema: string): string {
  // The second sum is over rows of older nodes.
  return `
    SELECT (SELECT coalesce(sum(result_bytes), 0) FROM ${schema}.jobs WHERE app = $1 AND removable_at IS NOT NULL) +
      (SELECT coalesce(sum((output.value ->> 'bytes')::numeric), 0) FROM ${schema}.jobs,
        json_each(${readableSql('record')} -> 'outputs') AS output
      WHERE app = $1 AND removable_at IS NOT NULL AND result_bytes IS NULL
        AND output.value ->> 'copied' IS DISTINCT FROM 'true')`
}

/** Record bytes of the application in $1. */
export function recordBytesStatement(schema: string): string {
  return `SELECT sum(coalesce(record_bytes, ${ordinaryRecordBytes})) FROM ${schema}.jobs WHERE app = $1 AND NOT deleted`
}

function isEmpty({ statuses, workflows }: JobQuery): boolean {
  return statuses?.length === 0 || workflows?.length === 0
}

function textsOf(texts: readonly string[]): string[] {
  return [...new Set(texts.map((text) => columnText(text)))]
}

/** Written out, not as a parameter, so that the planner can use indexes that hold one status only. */
function statusIn(statuses: NonNullable<JobQuery['statuses']>, app: string | undefined): string {
  const given = new Set(statuses.map((status) => jobStatusSchema.parse(status)))
  // In one order and once each, so that there are few texts, however a client names the statuses.
  const names = jobStatusSchema.options.filter((status) => given.has(status))
  const [only, ...others] = app === undefined ? names : []
  // Exactly these are in the index of waiting jobs. An application's indexes hold the status, and need no look at the
  // rows.
  if (only === 'QUEUED' && others.length === 0) return `status = 'QUEUED' AND waiting_since IS NOT NULL`
  if (only === 'STARTED' && others.length === 0) return `status = 'STARTED' AND lease_bucket IS NOT NULL`
  return `status IN (${names.map((status) => `'${status}'`).join(', ')})`
}
