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

/** The plus keeps SQLite from using an index of the column. */
function unindexed<Value>(condition: (value: Value) => Condition): (value: Value) => Condition {
  return (value) => {
    const [text, ...values] = condition(value)
    return [`+${text}`, ...values]
  }
}

/** For lists, which SQLite would otherwise find by status and sort. */
const listConditions: ByFilter<Condition> = { ...conditions, statuses: unindexed(conditions.statuses) }
/** For a batch: its jobs are fewer than those of a workflow. */
const batchConditions: ByFilter<Condition> = { ...conditions, workflows: unindexed(conditions.workflows) }
/** For the jobs that ended in some time. */
const spanConditions: ByFilter<Condition> = { ...batchConditions, batchName: unindexed(conditions.batchName) }
/** The same in the whole store, whose index is without the status. */
const spanOfAllConditions: ByFilter<Condition> = { ...spanConditions, statuses: unindexed(conditions.statuses) }
/** For a stretch of jobs in the order of their creation. */
const stretchConditions: ByFilter<Condition> = {
  ...spanOfAllConditions,
  completedAfter: unindexed(conditions.completedAfter),
  completedBefore: unindexed(conditions.completedBefore),
}
/** For the few jobs of all applications that have a status. */
const fewOfStatusConditions: ByFilter<Condition> = { ...stretchConditions, statuses: conditions.statuses }

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
  const [condition, order = ''] = dueConditions[reason]
  return {
    text: `SELECT id, record FROM jobs WHERE ${condition} AND app NOT IN (SELECT value FROM json_each(?2))
      AND id NOT IN (SELECT value FROM json_each(?3)) ${order} LIMIT ?4`,
    values: [now, JSON.stringify(exceptApps), JSON.stringify(unreadable), limit],
  }
}

/** Conditions with the time in ?1. */
const dueConditions: Record<DueReason, [condition: string, order?: string]> = {
  lapsed: ['lapses_at <= ?1', 'ORDER BY lapses_at'],
  abandoned: [
    `lapses_at <= ?1 AND
      (deadline <= ?1 OR iif(json_valid(record), json_extract(record, '$.cancelRequested'), false))`,
    'ORDER BY lapses_at',
  ],
  deleted: ['deleted = 1'],
  expired: ['removable_at <= ?1', 'ORDER BY removable_at'],
  // Only deadlines of waiting jobs: the others are in no index.
  overdue: ['deadline <= ?1 AND waiting_since IS NOT NULL', 'ORDER BY deadline'],
}

/**
 * Rows of `id, record`. Skips from application to application in the index, so that jobs of unwanted applications cost
 * nothing.
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

/** Jobs in the order of lists after one job, up to and including another. */
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

/** The place of the last of `jobs` jobs. */
export function stretchEndSql(app: string | undefined, after: JobPage['after'], jobs: number): Sql {
  const { text, values } = where([...eachFilter({ app }, conditions), ...within({ after })])
  return {
    text: `SELECT created_at AS createdAt, id FROM jobs ${text} ${newestFirst} LIMIT 1 OFFSET ?`,
    values: [...values, jobs - 1],
  }
}

/** Whether a list may have to skip or sort any number of unwanted jobs: no index has its order. */
export function passesMany(query: JobQuery): boolean {
  const { app, statuses, workflows, batchName, uploadKey, search } = query
  if (search !== undefined) return true
  if (uploadKey !== undefined) return false
  if (hasSpanOfEnds(query)) return true
  if (app !== undefined) return workflows !== undefined && batchName !== undefined
  const isQueued = statuses?.length === 1 && statuses[0] === 'QUEUED'
  return (workflows ?? batchName) !== undefined || (statuses !== undefined && !isQueued)
}

/** The same for a count, which needs no order. */
export function countPassesMany(query: JobQuery): boolean {
  const { app, workflows, batchName, search } = query
  if (!passesMany(query)) return false
  const narrowing = [workflows, batchName, hasSpanOfEnds(query) || undefined].filter((filter) => filter !== undefined)
  return search !== undefined || narrowing.length > 1 || (app === undefined && workflows !== undefined)
}

/** The part of such a query for which an index tells whether few jobs match; `undefined`: there is none. */
export function narrowPart(query: JobQuery): JobQuery | undefined {
  const { app, statuses, batchName, completedAfter, completedBefore, search } = query
  if (search !== undefined) return undefined
  if (app === undefined) return statuses && { statuses }
  if (hasSpanOfEnds(query)) return { app, statuses, completedAfter, completedBefore }
  return batchName === undefined ? undefined : { app, statuses, batchName }
}

function hasSpanOfEnds({ completedAfter, completedBefore }: JobQuery): boolean {
  return (completedAfter ?? completedBefore) !== undefined
}

/** The conditions by which the narrowest index is used. */
function conditionsOf(query: JobQuery): ByFilter<Condition> {
  if (hasSpanOfEnds(query)) return query.app === undefined ? spanOfAllConditions : spanConditions
  return query.batchName === undefined ? conditions : batchConditions
}

/** @param max where the count ends; it looks at no more jobs than that */
export function countSql(query: JobQuery, max = Infinity, stretch?: Stretch): Sql {
  // The status narrows the search in the indexes of lists even where it excludes nothing.
  const every = stretch === undefined && hasLists(query) ? jobStatusSchema.options : undefined
  const { text, values } = where([
    ...eachFilter({ ...query, statuses: query.statuses ?? every }, stretch ? stretchConditions : conditionsOf(query)),
    ...(stretch ? within(stretch) : []),
  ])
  if (max === Infinity) return { text: `SELECT count(*) AS count FROM jobs ${text}`, values }
  return { text: `SELECT count(*) AS count FROM (SELECT 1 FROM jobs ${text} LIMIT ?)`, values: [...values, max] }
}

/** Rows of `id, record`. @param stretch instead of `after` */
export function listSql(
  { limit, offset = 0, after, ...query }: JobPage,
  exceptIds: readonly string[] = [],
  stretch?: Stretch,
): Sql {
  const position = within(stretch ?? { after })
  if (exceptIds.length > 0) position.push(['id NOT IN (SELECT value FROM json_each(?))', JSON.stringify(exceptIds)])
  const rows = Math.max(limit, 0)
  if (!stretch && hasLists(query)) return mergedLists(query, position, rows, offset)
  const { text, values } = where([...eachFilter(query, tableOfList(query, stretch)), ...position])
  return {
    text: `SELECT id, record FROM jobs ${text} ${newestFirst} LIMIT ? OFFSET ?`,
    values: [...values, rows, offset],
  }
}

function tableOfList(query: JobQuery, stretch: Stretch | undefined): ByFilter<Condition> {
  if (stretch) return stretchConditions
  return query.app === undefined && passesMany(query) && narrowPart(query) ? fewOfStatusConditions : listConditions
}

/**
 * Whether an index has the jobs as a list for each status: so a page of a rare one costs no more than any other. A
 * search reads the texts in the index of all jobs of an application, not the rows.
 */
function hasLists(query: JobQuery): boolean {
  const { app, statuses, workflows, batchName, uploadKey, search } = query
  const isListed = (statuses ?? workflows ?? batchName) !== undefined || hasSpanOfEnds(query)
  return app !== undefined && uploadKey === undefined && search === undefined && isListed
}

/** The first rows of each status (and workflow), merged. */
function mergedLists(query: JobQuery, position: Condition[], rows: number, offset: number): Sql {
  const { statuses, workflows, ...rest } = query
  const table = conditionsOf(query)
  const plus = table === conditions ? '' : '+'
  const lists = [...new Set(statuses ?? jobStatusSchema.options)].flatMap((status) =>
    [...new Set(workflows ?? [undefined])].map((workflow) => [
      ['status = ?', status] satisfies Condition,
      ...(workflow === undefined ? [] : [[`${plus}workflow = ?`, workflow] satisfies Condition]),
    ]),
  )
  if (lists.length === 0) return { text: 'SELECT id, record FROM jobs WHERE false', values: [] }
  const others = [...eachFilter(rest, table), ...position]
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
