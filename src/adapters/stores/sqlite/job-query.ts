import { type JobStatus, jobStatusSchema } from '../../../core/engine/job/job.js'
import type { JobPage, JobQuery } from '../../../core/engine/ports/job-store.js'
import type { Value } from './sqlite-database.js'

export interface Sql {
  text: string
  values: Value[]
}

const newestFirst = 'ORDER BY created_at DESC, id DESC'

/** @param max where the count ends; it looks at no more jobs than that */
export function countSql({ statuses, workflows, ...query }: JobQuery, max = Infinity): Sql {
  const { texts, values } = conditions(query)
  if (workflows) {
    texts.push('workflow IN (SELECT value FROM json_each(?))')
    values.push(JSON.stringify(workflows))
  }
  // The status narrows the search in the indexes of these even where it excludes nothing.
  const isInIndexes = query.app !== undefined && (workflows !== undefined || query.batchName !== undefined)
  const wanted = statuses ?? (isInIndexes ? jobStatusSchema.options : undefined)
  if (wanted) {
    texts.push(`status IN (${wanted.map(() => '?').join(', ')})`)
    values.push(...wanted)
  }
  const jobs = `FROM jobs WHERE ${texts.join(' AND ')}`
  if (max === Infinity) return { text: `SELECT count(*) AS count ${jobs}`, values }
  return { text: `SELECT count(*) AS count FROM (SELECT 1 ${jobs} LIMIT ?)`, values: [...values, max] }
}

/** Rows of `id, record`. */
export function listSql({ limit, offset = 0, after, ...query }: JobPage, exceptIds: readonly string[] = []): Sql {
  const { statuses, workflows, app, uploadKey } = query
  const { texts, values } = conditions(query)
  if (after) {
    texts.push('(created_at, id) < (?, ?)')
    values.push(after.createdAt, after.id)
  }
  if (exceptIds.length > 0) {
    texts.push('id NOT IN (SELECT value FROM json_each(?))')
    values.push(JSON.stringify(exceptIds))
  }
  const rows = Math.max(limit, 0)
  // A page of a rare status or workflow costs no more than any other: each is its own sorted list in an index.
  const isByList = statuses !== undefined || workflows !== undefined || query.batchName !== undefined
  if (app !== undefined && uploadKey === undefined && isByList)
    return mergedLists(query, { texts, values }, rows, offset)
  if (statuses) {
    // The plus keeps SQLite from searching by status and sorting what it finds.
    texts.push(`+status IN (${statuses.map(() => '?').join(', ')})`)
    values.push(...statuses)
  }
  if (workflows) {
    texts.push('workflow IN (SELECT value FROM json_each(?))')
    values.push(JSON.stringify(workflows))
  }
  return {
    text: `SELECT id, record FROM jobs WHERE ${texts.join(' AND ')} ${newestFirst} LIMIT ? OFFSET ?`,
    values: [...values, rows, offset],
  }
}

/** The first rows of each status (and workflow), merged. */
function mergedLists(
  { statuses, workflows }: JobQuery,
  { texts, values }: Conditions,
  rows: number,
  offset: number,
): Sql {
  const lists: [JobStatus, string | undefined][] = [...new Set(statuses ?? jobStatusSchema.options)].flatMap((status) =>
    [...new Set(workflows ?? [undefined])].map((workflow): [JobStatus, string | undefined] => [status, workflow]),
  )
  if (lists.length === 0) return { text: 'SELECT id, record FROM jobs WHERE false', values: [] }
  const where = [...texts, 'status = ?', ...(workflows ? ['workflow = ?'] : [])].join(' AND ')
  const list = `SELECT * FROM (SELECT id, created_at FROM jobs WHERE ${where} ${newestFirst} LIMIT ?)`
  return {
    text: `SELECT jobs.id, jobs.record FROM (${lists.map(() => list).join(' UNION ALL ')} ${newestFirst} LIMIT ? OFFSET ?) AS page
      CROSS JOIN jobs ON jobs.id = page.id ORDER BY page.created_at DESC, page.id DESC`,
    values: [
      ...lists.flatMap(([status, workflow]) => [
        ...values,
        status,
        ...(workflow === undefined ? [] : [workflow]),
        rows + offset,
      ]),
      rows,
      offset,
    ],
  }
}

interface Conditions {
  texts: string[]
  values: Value[]
}

/** All but those on status and workflow. */
function conditions({ app, batchName, createdAfter, createdBefore, uploadKey }: JobQuery): Conditions {
  const texts = ['deleted = 0']
  const values: Value[] = []
  const add = (text: string, value: Value) => {
    texts.push(text)
    values.push(value)
  }
  if (app !== undefined) add('app = ?', app)
  if (batchName !== undefined) add('batch_name = ?', batchName)
  if (createdAfter !== undefined) add('created_at >= ?', createdAfter)
  if (createdBefore !== undefined) add('created_at < ?', createdBefore)
  if (uploadKey !== undefined) add('id IN (SELECT job_id FROM job_uploads WHERE upload_key = ?)', uploadKey)
  return { texts, values }
}
