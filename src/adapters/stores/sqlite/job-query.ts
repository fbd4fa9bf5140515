import { jobStatusSchema } from '../../../core/engine/job/job.js'
import { searchWords } from '../../../core/engine/job/search-text.js'
import { type ByFilter, eachFilter, type JobQuery } from '../../../core/engine/ports/job-query.js'
import type { DeliverablePage, DueReason, JobPage } from '../../../core/engine/ports/job-store.js'
import type { Value } from './sqlite-database.js'

export interface Sql {
  text: string
  values: Value[]
}

const newestFirst = 'ORDER BY created_at DESC, id DESC'

type Condition = [text: string, ...values: Value[]]

const conditions: ByFilter<Condition> = {
  app: (app) => ['app = ?', app],
  statuses: (statuses) => [`status IN (${statuses.map(() => '?').join(', ')})`, ...statuses],
  workflows: (workflows) => ['workflow IN (SELECT value FROM json_each(?))', JSON.stringify(workflows)],
  batchName: (name) => ['batch_name = ?', name],
  createdAfter: (time) => ['created_at >= ?', time],
  createdBefore: (time) => ['created_at < ?', time],
  completedAfter: (time) => ['completed_at >= ?', time],
  completedBefore: (time) => ['completed_at < ?', time],
  uploadKey: (key) => ['id IN (SELECT job_id FROM job_uploads WHERE upload_key = ?)', key],
  search(search) {
    const words = searchWords(search)
    return [
      words.map(() => '(instr(search, ?) > 0 OR id = ?)').join(' AND ') || 'true',
      ...words.flatMap((word) => [word, word]),
    ]
  },
}

/** The plus keeps SQLite from searching by status and sorting what it finds. */
const listConditions: ByFilter<Condition> = {
  ...conditions,
  statuses(statuses) {
    const [text, ...values] = conditions.statuses(statuses)
    return [`+${text}`, ...values]
  },
}

export const resultBytesSql =
  'SELECT coalesce(sum(result_bytes), 0) AS bytes FROM jobs WHERE app = ? AND result_bytes IS NOT NULL'

/** Rows of `id, record`. @param options.limit negative: all */
export function dueSql(
  reason: DueReason,
  now: number,
  {
    exceptApps = [],
    unreadable,
    limit = -1,
  }: { exceptApps?: readonly string[]; unreadable: readonly string[]; limit?: number },
): Sql {
  const rest = [JSON.stringify(exceptApps), JSON.stringify(unreadable), limit]
  const wanted = 'app NOT IN (SELECT value FROM json_each(?)) AND id NOT IN (SELECT value FROM json_each(?))'
  if (reason === 'deleted')
    return { text: `SELECT id, record FROM jobs WHERE deleted = 1 AND ${wanted} LIMIT ?`, values: rest }
  const column = dueColumns[reason]
  const more = dueConditions[reason]
  return {
    text: `SELECT id, record FROM jobs WHERE ${column} <= ? ${more ? `AND ${more}` : ''} AND ${wanted}
      ORDER BY ${column} LIMIT ?`,
    values: [now, ...(reason === 'abandoned' ? [now] : []), ...rest],
  }
}

const dueColumns = {
  lapsed: 'lapses_at',
  abandoned: 'lapses_at',
  overdue: 'deadline',
  expired: 'removable_at',
} satisfies Record<Exclude<DueReason, 'deleted'>, string>

const dueConditions: Partial<Record<DueReason, string>> = {
  // Deadlines of jobs that wait alone: the others are in no index.
  overdue: 'waiting_since IS NOT NULL',
  abandoned: "(deadline <= ? OR iif(json_valid(record), json_extract(record, '$.cancelRequested'), false))",
}

/**
 * Rows of `id, record`. Goes from application to application in the index, so that the jobs of one cost nothing where
 * those of others are wanted.
 */
export function deliverableSql(
  now: number,
  { limit, perApp, exceptApps }: DeliverablePage,
  unreadable: readonly string[],
): Sql {
  const nextApp = 'SELECT app FROM jobs WHERE deliverable_at IS NOT NULL'
  return {
    text: `WITH RECURSIVE apps (app) AS (
        SELECT * FROM (${nextApp} ORDER BY app LIMIT 1)
        UNION ALL SELECT (${nextApp} AND jobs.app > apps.app ORDER BY app LIMIT 1) FROM apps WHERE app IS NOT NULL
      )
      SELECT jobs.id, jobs.record FROM apps CROSS JOIN jobs ON jobs.id IN (
        SELECT id FROM jobs WHERE app = apps.app AND deliverable_at <= ?
          AND id NOT IN (SELECT value FROM json_each(?)) ORDER BY deliverable_at LIMIT ?
      )
      WHERE apps.app NOT IN (SELECT value FROM json_each(?)) ORDER BY jobs.deliverable_at LIMIT ?`,
    values: [now, JSON.stringify(unreadable), Math.max(perApp, 0), JSON.stringify(exceptApps), Math.max(limit, 0)],
  }
}

/** Jobs that come after one in a list, up to and with another. */
export interface Stretch {
  after: JobPage['after']
  last?: JobPage['after']
}

function within({ after, last }: Stretch): Condition[] {
  return [
    ...(after ? [['(created_at, id) < (?, ?)', after.createdAt, after.id] satisfies Condition] : []),
    ...(last ? [['(created_at, id) >= (?, ?)', last.createdAt, last.id] satisfies Condition] : []),
  ]
}

/** The place of the last of so many jobs. */
export function stretchEndSql(app: string | undefined, after: JobPage['after'], jobs: number): Sql {
  const { text, values } = where([...eachFilter({ app }, conditions), ...within({ after })])
  return {
    text: `SELECT created_at AS createdAt, id FROM jobs ${text} ${newestFirst} LIMIT 1 OFFSET ?`,
    values: [...values, jobs - 1],
  }
}

/** @param max where the count ends; it looks at no more jobs than that */
export function countSql(query: JobQuery, max = Infinity, stretch: Stretch = { after: undefined }): Sql {
  // The status narrows the search in the indexes of lists even where it excludes nothing.
  const statuses = query.statuses ?? (hasLists(query) ? jobStatusSchema.options : undefined)
  // Searches, and spans of ends in the whole store, have an index without the status.
  const isBySpan = query.app === undefined && (query.completedAfter ?? query.completedBefore) !== undefined
  const table = query.search === undefined && !isBySpan ? conditions : listConditions
  const { text, values } = where([...eachFilter({ ...query, statuses }, table), ...within(stretch)])
  if (max === Infinity) return { text: `SELECT count(*) AS count FROM jobs ${text}`, values }
  return { text: `SELECT count(*) AS count FROM (SELECT 1 FROM jobs ${text} LIMIT ?)`, values: [...values, max] }
}

/** Rows of `id, record`. */
export function listSql(
  { limit, offset = 0, after, last, ...query }: JobPage & Omit<Stretch, 'after'>,
  exceptIds: readonly string[] = [],
): Sql {
  const position = within({ after, last })
  if (exceptIds.length > 0) position.push(['id NOT IN (SELECT value FROM json_each(?))', JSON.stringify(exceptIds)])
  const rows = Math.max(limit, 0)
  if (hasLists(query)) return mergedLists(query, position, rows, offset)
  const { text, values } = where([...eachFilter(query, listConditions), ...position])
  return {
    text: `SELECT id, record FROM jobs ${text} ${newestFirst} LIMIT ? OFFSET ?`,
    values: [...values, rows, offset],
  }
}

/**
 * Whether an index has the jobs as a list for each status: so a page of a rare one costs no more than any other. A
 * search reads the texts in the index of all jobs of an application, not the rows.
 */
function hasLists(query: JobQuery): boolean {
  const { app, statuses, workflows, batchName, completedAfter, completedBefore, uploadKey, search } = query
  const listed = [statuses, workflows, batchName, completedAfter, completedBefore]
  const isSearched = uploadKey !== undefined || search !== undefined
  return app !== undefined && !isSearched && listed.some((filter) => filter !== undefined)
}

/** The first rows of each status (and workflow), merged. */
function mergedLists(
  { statuses, workflows, ...rest }: JobQuery,
  position: Condition[],
  rows: number,
  offset: number,
): Sql {
  const lists = [...new Set(statuses ?? jobStatusSchema.options)].flatMap((status) =>
    [...new Set(workflows ?? [undefined])].map((workflow) => [
      ['status = ?', status] satisfies Condition,
      ...(workflow === undefined ? [] : [['workflow = ?', workflow] satisfies Condition]),
    ]),
  )
  if (lists.length === 0) return { text: 'SELECT id, record FROM jobs WHERE false', values: [] }
  const others = [...eachFilter(rest, conditions), ...position]
  const selects = lists.map((list) => {
    const { text, values } = where([...others, ...list])
    return {
      text: `SELECT * FROM (SELECT id, created_at FROM jobs ${text} ${newestFirst} LIMIT ?)`,
      values: [...values, rows + offset],
    }
  })
  return {
    text: `SELECT jobs.id, jobs.record FROM (
        ${selects.map(({ text }) => text).join(' UNION ALL ')} ${newestFirst} LIMIT ? OFFSET ?
      ) AS page
      CROSS JOIN jobs ON jobs.id = page.id ORDER BY page.created_at DESC, page.id DESC`,
    values: [...selects.flatMap(({ values }) => values), rows, offset],
  }
}

function where(all: readonly Condition[]): Sql {
  return {
    text: `WHERE ${['deleted = 0', ...all.map(([text]) => text)].join(' AND ')}`,
    values: all.flatMap(([, ...values]) => values),
  }
}
