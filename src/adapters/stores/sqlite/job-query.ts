import type { JobPage, JobQuery } from '../../../core/engine/ports/job-store.js'
import type { Value } from './sqlite-database.js'

export interface Sql {
  text: string
  values: Value[]
}

export function countSql(query: JobQuery): Sql {
  const { text, values } = conditions(query, false)
  return { text: `SELECT count(*) AS count FROM jobs WHERE ${text}`, values }
}

export function listSql({ limit, offset = 0, after, ...query }: JobPage): Sql {
  const { text, values } = conditions(query, true)
  if (after) values.push(after.createdAt, after.id)
  const cursor = after ? ' AND (created_at, id) < (?, ?)' : ''
  return {
    text: `SELECT record FROM jobs WHERE ${text}${cursor} ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?`,
    values: [...values, Math.max(limit, 0), offset],
  }
}

/** @param ordered whether rows are wanted newest first: then an index that is in that order beats one that finds fewer rows. */
function conditions(
  { app, statuses, workflows, batchName, createdAfter, createdBefore, uploadKey }: JobQuery,
  ordered: boolean,
): Sql {
  const texts = ['deleted = 0']
  const values: Value[] = []
  const add = (text: string, ...added: Value[]) => {
    texts.push(text)
    values.push(...added)
  }
  if (app !== undefined) add('app = ?', app)
  if (statuses) {
    const wanted = [...new Set(statuses)]
    const [only, ...others] = wanted
    const inOrder = !ordered || (app !== undefined && wanted.length === 1)
    // The plus keeps SQLite from searching by status and sorting what it finds.
    if (only !== undefined && others.length === 0) add(`${inOrder ? '' : '+'}status = ?`, only)
    else add(`${inOrder ? '' : '+'}status IN (${wanted.map(() => '?').join(', ')})`, ...wanted)
  }
  if (workflows) add('workflow IN (SELECT value FROM json_each(?))', JSON.stringify(workflows))
  if (batchName !== undefined) add('batch_name = ?', batchName)
  if (createdAfter !== undefined) add('created_at >= ?', createdAfter)
  if (createdBefore !== undefined) add('created_at < ?', createdBefore)
  if (uploadKey !== undefined) add('id IN (SELECT job_id FROM job_uploads WHERE upload_key = ?)', uploadKey)
  return { text: texts.join(' AND '), values }
}
