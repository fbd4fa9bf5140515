import type { JobRecord } from '../../../core/engine/job/job.js'
import { claim } from '../../../core/engine/job/transitions.js'
import { type Backlog, mostCounted } from '../../../core/engine/ports/job-store.js'
import type { JobTables } from './job-creates.js'
import { dueSql } from './job-query.js'
import type { FoundRow } from './job-rows.js'
import { schedulingRules, type WantedByRules } from './scheduling-rules.js'
import type { JobClaims } from '../shared/method-groups.js'
import { mergedBacklog } from '../shared/merged-backlog.js'
import type { SqliteDatabase } from './sqlite-database.js'

/** Whether the workflow is one of these or, by the second value, none of them. */
const isOfWorkflow = '(workflow IN (SELECT value FROM json_each(?)) = ?)'
/** Whether these labels include all of the pool's. */
const isOfPool = `(pool = '' OR ? OR NOT EXISTS (
  SELECT 1 FROM json_each('["' || replace(pool, ' ', '","') || '"]') AS label
  WHERE label.value NOT IN (SELECT value FROM json_each(?))))`
const firstInTurn = `
  SELECT jobs.id, jobs.record, turns.app, turns.rowid AS came, served FROM turns CROSS JOIN jobs ON jobs.id = (
    SELECT id FROM jobs WHERE jobs.app = turns.app AND waiting_since <= ? AND id NOT IN (SELECT value FROM json_each(?))
      AND ${isOfWorkflow} AND ${isOfPool} ORDER BY rank, waiting_since, id LIMIT 1
  ) WHERE turns.app NOT IN (SELECT value FROM json_each(?)) AND (? OR turns.app IN (SELECT value FROM json_each(?)))
  ORDER BY served, turns.rowid LIMIT 1`
const forgetIdle = `
  DELETE FROM turns WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.app = turns.app AND waiting_since IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE status = 'STARTED' AND jobs.app = turns.app AND deleted = 0) AND`

const aheadSql = `SELECT (
    SELECT count(*) FROM (
      SELECT 1 FROM jobs WHERE app = own.app AND (rank, waiting_since, id) < (own.rank, own.waiting_since, own.id)
        AND waiting_since <= ? LIMIT ?)
  ) AS ahead FROM jobs AS own WHERE own.id = ? AND own.waiting_since <= ?`

const runningSql = `SELECT id, record FROM jobs WHERE lapses_at IS NOT NULL
  AND id NOT IN (SELECT value FROM json_each(?)) LIMIT ?`
/** One job of each application in turn: the first of each, then the second. */
const upcomingSql = `
  SELECT id FROM (
    SELECT jobs.id, served, came, row_number() OVER (PARTITION BY turn.app ORDER BY rank, waiting_since, jobs.id) AS nth
    FROM (
      SELECT app, served, rowid AS came FROM turns
      WHERE EXISTS (SELECT 1 FROM jobs WHERE jobs.app = turns.app AND waiting_since <= ?) ORDER BY served, rowid LIMIT ?
    ) AS turn CROSS JOIN jobs ON jobs.id IN (
      SELECT id FROM jobs WHERE jobs.app = turn.app AND waiting_since <= ?
        AND id NOT IN (SELECT value FROM json_each(?)) ORDER BY rank, waiting_since, id LIMIT ?
    )
  ) ORDER BY nth, served, came LIMIT ?`
const recordsSql = `
  SELECT jobs.id, jobs.record FROM json_each(?) AS wanted CROSS JOIN jobs ON jobs.id = wanted.value ORDER BY wanted.key`

function queue({ rows, database, clock }: JobTables, max: number): { running: JobRecord[]; waiting: JobRecord[] } {
  const now = clock()
  const upcoming = (unreadable: readonly string[]) => {
    // However many jobs wait, this looks at no more than four times as many as are wanted.
    for (let most = 1; ; most *= 2) {
      const ids = database
        .all<{ id: string }>(upcomingSql, [now, max, now, JSON.stringify(unreadable), most, max])
        .map(({ id }) => id)
      if (ids.length >= max || most >= max) return ids
    }
  }
  return {
    running: rows.select((unreadable) => ({ text: runningSql, values: [JSON.stringify(unreadable), max] })),
    waiting: rows.select((unreadable) => ({ text: recordsSql, values: [JSON.stringify(upcoming(unreadable))] })),
  }
}

/** Claims, and the order of waiting jobs. */
export function jobClaims(tables: JobTables): JobClaims {
  const { database, rows, clock } = tables
  const rules = schedulingRules(database)

  return {
    async claim({ id, ...request }) {
      const now = clock()
      return database.transaction(() => {
        const wanted = { ...request, rules: rules.read() }
        const job =
          id === undefined
            ? (lapsed(Math.min(now, request.lapsedBefore ?? now), wanted) ?? takeTurn(now, wanted))
            : rows.read(id)
        const next = job && rules.mayBegin(job, wanted) ? claim(job, request, now) : undefined
        return next && rows.replace(next)
      })
    },

    async ahead(id, { max }) {
      const now = clock()
      return database.get<{ ahead: number }>(aheadSql, [now, max, id, now])?.ahead
    },

    queue: async ({ max }) => queue(tables, max),

    backlog: async () => backlog(database, clock()),

    rules: async () => rules.read(),

    async changeRule(target, change) {
      rules.change(target, change)
      await database.durable()
    },
  }

  /** The job whose lease ran out first, of those that may begin. */
  function lapsed(before: number, wanted: WantedByRules): JobRecord | undefined {
    const jobs = rows.select((unreadable) => dueSql('lapsed', before, { exceptApps: wanted.exceptApps, unreadable }))
    return jobs.find((job) => rules.mayBegin(job, wanted))
  }

  /** The next queued job that is due, in a transaction. Applications before it without waiting jobs are forgotten. */
  function takeTurn(now: number, wanted: WantedByRules): JobRecord | undefined {
    const { isAnyClosed, apps, workflows } = rules.closed(wanted)
    if (isAnyClosed) return undefined
    const row = database.get<FoundRow & { app: string; served: number; came: number }>(firstInTurn, [
      now,
      JSON.stringify(rows.unreadable),
      JSON.stringify(workflows.names),
      workflows.areWanted ? 1 : 0,
      wanted.labels ? 0 : 1,
      JSON.stringify(wanted.labels ?? []),
      JSON.stringify(apps),
      wanted.onlyApps ? 0 : 1,
      JSON.stringify(wanted.onlyApps ?? []),
    ])
    if (!row) {
      database.write(`${forgetIdle} 1`)
      return undefined
    }
    const [job] = rows.readable([row])
    if (!job) return takeTurn(now, wanted)
    database.write(`${forgetIdle} (served, rowid) < (?, ?)`, [row.served, row.came])
    database.write('UPDATE turns SET served = (SELECT max(served) + 1 FROM turns) WHERE app = ?', [row.app])
    return job
  }
}

/** For `JobStore.backlog`: from one workflow and pool to the next, without reading the jobs in between. */
export function backlog(database: SqliteDatabase, now: number): Backlog[] {
  const waiting: Omit<Backlog, 'running'>[] = []
  let last = { workflow: '', pool: '' }
  for (;;) {
    const next = database.get<{ workflow: string; pool: string }>(
      'SELECT workflow, pool FROM jobs WHERE waiting_since IS NOT NULL AND (workflow, pool) > (?, ?) ORDER BY ' +
        'workflow, pool LIMIT 1',
      [last.workflow, last.pool],
    )
    if (!next) break
    const { workflow, pool } = next
    last = { workflow, pool }
    const found = database.get<{ queued: number; first: number | null }>(
      `SELECT count(*) AS queued, min(waiting_since) AS first FROM (
        SELECT waiting_since FROM jobs WHERE workflow = ? AND pool = ? AND waiting_since <= ?
          ORDER BY waiting_since LIMIT ?)`,
      [workflow, pool, now, mostCounted],
    )
    if (found && found.queued > 0) waiting.push({ ...last, queued: found.queued, oldestMs: now - (found.first ?? now) })
  }
  const running = database.all<{ workflow: string; pool: string; running: number }>(
    'SELECT workflow, pool, count(*) AS running FROM (SELECT workflow, pool FROM jobs WHERE lapses_at IS NOT NULL ' +
      'LIMIT ?) GROUP BY workflow, pool',
    [mostCounted],
  )
  return mergedBacklog(waiting, running)
}
