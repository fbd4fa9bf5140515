import { StemworkError } from '../../../core/engine/errors.js'
import { deliverableAt, lapsesAt, removableAt, waitingSince } from '../../../core/engine/job/due-times.js'
import { type JobRecord, jobRecordSchema } from '../../../core/engine/job/job.js'
import { alreadyExists, queueFull } from '../../../core/engine/job/queue-limit.js'
import { resultBytes } from '../../../core/engine/job/result-bytes.js'
import { claim, transition } from '../../../core/engine/job/transitions.js'
import type { CreateOptions, DueKind, JobStore } from '../../../core/engine/ports/job-store.js'
import { repeatable } from '../shared/repeatable.js'
import { UnreadableRows } from '../shared/unreadable-rows.js'
import { backlog } from './backlog.js'
import { countSql, listSql } from './job-query.js'
import { SchedulingRules, type Wanted } from './scheduling-rules.js'
import { parseRecord } from './record.js'
import type { SqliteDatabase, Value } from './sqlite-database.js'
import { sqliteDocuments } from './sqlite-documents.js'
import { UsageTable } from './usage.js'

interface Row {
  record: string
}

interface FoundRow extends Row {
  id: string
}

const insert = `INSERT INTO jobs (status, deleted, idempotency_key, waiting_since, lapses_at, removable_at,
  result_bytes, deliverable_at, completed_at, record, id, app, created_at, workflow, batch_name, rank, deadline, pool)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const update = `UPDATE jobs SET status = ?, deleted = ?, idempotency_key = iif(? IS NULL, NULL, idempotency_key),
  waiting_since = ?, lapses_at = ?, removable_at = ?, result_bytes = ?, deliverable_at = ?, completed_at = ?, record = ?
    WHERE id = ?`
const releaseKey = 'UPDATE jobs SET idempotency_key = NULL WHERE app = ? AND idempotency_key = ?'
/** The commonest write, a heartbeat, touches one index instead of all. */
const renew = 'UPDATE jobs SET lapses_at = ?, record = ? WHERE id = ?'

const joinTurns = 'INSERT OR IGNORE INTO turns (app, served) VALUES (?, 0)'
const isReadable = 'id NOT IN (SELECT value FROM json_each(?))'
/** Of any workflow but some, or of some alone. */
const isOfWorkflow = '(workflow IN (SELECT value FROM json_each(?)) = ?)'
/** Of a pool whose labels are all among some. */
const isOfPool = `(pool = '' OR ? OR NOT EXISTS (SELECT 1 FROM json_each('["' || 
  replace(pool, ' ', '","') || '"]') AS label
  WHERE label.value NOT IN (SELECT value FROM json_each(?))))`
const firstInTurn = `SELECT jobs.id, jobs.record, turns.app, turns.rowid AS came, served FROM turns
  CROSS JOIN jobs ON jobs.id =
    (SELECT id FROM jobs WHERE jobs.app = turns.app AND waiting_since <= ? AND ${isReadable} AND ${isOfWorkflow}
      AND ${isOfPool} ORDER BY rank, waiting_since, id LIMIT 1)
  WHERE turns.app NOT IN (SELECT value FROM json_each(?)) ORDER BY served, turns.rowid LIMIT 1`
const forgetIdle =
  'DELETE FROM turns WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.app = turns.app AND waiting_since IS NOT NULL) AND'

export const resultBytesSql =
  'SELECT coalesce(sum(result_bytes), 0) AS bytes FROM jobs WHERE app = ? AND result_bytes IS NOT NULL'

const aheadSql = `SELECT (SELECT count(*) FROM (SELECT 1 FROM jobs WHERE app = own.app AND 
  (rank, waiting_since, id) < (own.rank, own.waiting_since, own.id)
    AND waiting_since <= ? LIMIT ?)) AS ahead FROM jobs AS own WHERE own.id = ? AND own.waiting_since <= ?`

const isWanted = `app NOT IN (SELECT value FROM json_each(?)) AND ${isReadable}`

const dueSql: Record<DueKind, string> = {
  lapsed: `SELECT id, record FROM jobs WHERE lapses_at <= ? AND ${isWanted} ORDER BY lapses_at LIMIT ?`,
  overdue:
    `SELECT id, record FROM jobs WHERE deadline <= ? AND waiting_since IS NOT NULL AND ${isWanted} ORDER BY ` +
    'deadline LIMIT ?',
  expired: `SELECT id, record FROM jobs WHERE removable_at <= ? AND ${isWanted} ORDER BY removable_at LIMIT ?`,
  deliverable: `SELECT id, record FROM jobs WHERE deliverable_at <= ? AND ${isWanted} ORDER BY deliverable_at LIMIT ?`,
  deleted: `SELECT id, record FROM jobs WHERE deleted = 1 AND ${isWanted} LIMIT ?`,
}

/** Records are read, changed and written without a break in between, in a process that has the file to itself. */
export function sqliteJobs(
  database: SqliteDatabase,
  { clock, idempotencyMs }: { clock: () => number; idempotencyMs: number },
): JobStore {
  const unreadable = new UnreadableRows()
  const rules = new SchedulingRules(database)
  const usage = new UsageTable(database)

  return {
    traits: { scope: 'process' },

    async create(job, { tx, maxQueued = Infinity, quota } = {}) {
      if (tx !== undefined) {
        throw new StemworkError(
          'INVALID_OPTIONS',
          'The SQLite store cannot join a transaction. Call without `tx`, or use a store that joins yours, such as ' +
            'Postgres.',
        )
      }
      const made = database.transaction(() => {
        const created: JobRecord = { ...job, createdAt: clock() }
        if (job.idempotency) {
          const first = withIdempotencyKey(job.app, job.idempotency.key, created.createdAt)
          if (first) return { job: first, created: false }
          // An expired key is taken from its job, so that this one can have it.
          database.write(releaseKey, job.app, job.idempotency.key)
        }
        refuseMore(job.app, { maxQueued, quota })
        return { job: insertNew(created), created: true }
      })
      await database.durable()
      return made
    },

    async createAll(jobs, limits = {}) {
      const [first] = jobs
      if (!first) return []
      const made = database.transaction(() => {
        refuseMore(first.app, limits, jobs.length)
        return jobs.map((job) => insertNew({ ...job, createdAt: clock() }))
      })
      await database.durable()
      return made
    },

    async usage(app) {
      return usage.read(app, clock())
    },

    async backlog() {
      return backlog(database, clock())
    },

    documents: sqliteDocuments(database, clock),

    async findByIdempotencyKey(app, key) {
      return withIdempotencyKey(app, key, clock())
    },

    async get(id) {
      const row = database.get<Row>('SELECT record FROM jobs WHERE id = ? AND deleted = 0', id)
      return row && parse(row.record)
    },

    async list(page) {
      for (;;) {
        const { text, values } = listSql(page, unreadable.ids)
        const rows = database.all<FoundRow>(text, ...values)
        const jobs = readable(rows)
        if (jobs.length === rows.length) return jobs
      }
    },

    async count(query, { max } = {}) {
      const { text, values } = countSql(query, max)
      return database.get<{ count: number }>(text, ...values)?.count ?? 0
    },

    async resultBytes(app) {
      return database.get<{ bytes: number }>(resultBytesSql, app)?.bytes ?? 0
    },

    async claim({ id, exceptApps, workflows, labels, ...request }) {
      const now = clock()
      return database.transaction(() => {
        const wanted = { exceptApps, workflows, labels, rules: rules.read() }
        const job = id === undefined ? (lapsed(now, wanted) ?? takeTurn(now, wanted)) : read(id)
        const next = job && rules.mayBegin(job, wanted) ? claim(job, request, now) : undefined
        return next && write(next, update)
      })
    },

    async rules() {
      return [...rules.read()]
    },

    async changeRule(target, change) {
      rules.change(target, change)
      await database.durable()
    },

    async ahead(id, { max }) {
      const now = clock()
      return database.get<{ ahead: number }>(aheadSql, now, max, id, now)?.ahead
    },

    async apply(id, change) {
      const changed = database.transaction(() => {
        const job = read(id)
        const next = job && transition(job, change, clock())
        if (next && change.kind === 'retry') refuseMore(next.app, change)
        if (next && 'usage' in change && change.usage) usage.add(next.app, clock(), change.usage)
        if (next && waitingSince(next) !== null) database.write(joinTurns, next.app)
        return next && write(next, change.kind === 'heartbeat' ? renew : update)
      })
      if (changed && !repeatable.includes(change.kind)) await database.durable()
      return changed
    },

    async due(kind, limit, { exceptApps = [] } = {}) {
      return due(kind, clock(), Math.max(limit, 0), exceptApps)
    },

    async purge(target) {
      if ('id' in target)
        return ids(database.all('DELETE FROM jobs WHERE id = ? AND deleted = 1 RETURNING id', target.id))
      return database.transaction(() => {
        const ended = ids(
          database.all(
            'SELECT id FROM jobs WHERE completed_at < ? AND deleted = 0 ORDER BY completed_at LIMIT ?',
            target.endedBefore,
            Math.max(target.limit, 0),
          ),
        )
        for (const id of ended) database.write('DELETE FROM jobs WHERE id = ?', id)
        return ended
      })
    },

    async unreadable() {
      return unreadable.ids
    },

    async beginFilePass(everyMs) {
      const now = clock()
      const pass = database.transaction(() =>
        database.get<{ deployment: string; pass: number }>(
          `UPDATE deployment SET pass = pass + 1, pass_at = ? WHERE pass_at IS NULL OR pass_at <= ?
          RETURNING id AS deployment, pass`,
          now,
          now - everyMs,
        ),
      )
      if (pass) await database.durable()
      return pass
    },
  }

  function read(id: string): JobRecord | undefined {
    const row = database.get<Row>('SELECT record FROM jobs WHERE id = ?', id)
    return row && parse(row.record)
  }

  /** @param limit negative: all */
  function due(kind: DueKind, now: number, limit: number, exceptApps: readonly string[]): JobRecord[] {
    for (;;) {
      const rest = [JSON.stringify(exceptApps), JSON.stringify(unreadable.ids), limit]
      const rows = database.all<FoundRow>(dueSql[kind], ...(kind === 'deleted' ? rest : [now, ...rest]))
      const jobs = readable(rows)
      if (jobs.length === rows.length) return jobs
    }
  }

  /** A damaged record is an error of its own job, not of those after it. */
  function readable(rows: readonly FoundRow[]): JobRecord[] {
    return unreadable.readable(
      rows,
      ({ id }) => id,
      ({ record }) => parse(record),
    )
  }

  /** The job whose lease ran out first, of those that may begin. */
  function lapsed(now: number, wanted: Wanted): JobRecord | undefined {
    return due('lapsed', now, -1, wanted.exceptApps ?? []).find((job) => rules.mayBegin(job, wanted))
  }

  /** The next queued job that is due, in a transaction. Applications before it without waiting jobs are forgotten. */
  function takeTurn(now: number, wanted: Wanted): JobRecord | undefined {
    const { isAnyClosed, apps, workflows } = rules.closed(wanted)
    if (isAnyClosed) return undefined
    const row = database.get<FoundRow & { app: string; served: number; came: number }>(
      firstInTurn,
      now,
      JSON.stringify(unreadable.ids),
      JSON.stringify(workflows.names),
      workflows.areWanted ? 1 : 0,
      wanted.labels ? 0 : 1,
      JSON.stringify(wanted.labels ?? []),
      JSON.stringify(apps),
    )
    if (!row) {
      database.write(`${forgetIdle} 1`)
      return undefined
    }
    const [job] = readable([row])
    if (!job) return takeTurn(now, wanted)
    database.write(`${forgetIdle} (served, rowid) < (?, ?)`, row.served, row.came)
    database.write('UPDATE turns SET served = (SELECT max(served) + 1 FROM turns) WHERE app = ?', row.app)
    return job
  }

  function write(job: JobRecord, sql: typeof update | typeof renew): JobRecord {
    const record = JSON.stringify(job)
    if (sql === renew) database.write(renew, lapsesAt(job), record, job.id)
    else database.write(update, ...columns(job), record, job.id)
    return parse(record)
  }

  /** The job that the key points at, if that is still valid. */
  function withIdempotencyKey(app: string, key: string, now: number): JobRecord | undefined {
    const row = database.get<Row & { created_at: number }>(
      'SELECT created_at, record FROM jobs WHERE app = ? AND idempotency_key = ?',
      app,
      key,
    )
    return row && row.created_at + idempotencyMs > now ? parse(row.record) : undefined
  }

  function insertNew(job: JobRecord): JobRecord {
    if (database.get('SELECT 1 FROM jobs WHERE id = ?', job.id)) throw alreadyExists(job.id)
    const record = JSON.stringify(job)
    const { id, app, createdAt, workflow, batchName, priority, deadline, pool } = job
    const values = [record, id, app, createdAt, workflow, batchName, -priority, deadline, pool]
    database.write(insert, ...columns(job), ...values)
    if (waitingSince(job) !== null) database.write(joinTurns, app)
    for (const key of new Set(Object.values(job.uploads)))
      database.write('INSERT INTO job_uploads (job_id, upload_key) VALUES (?, ?)', id, key)
    return parse(record)
  }

  /** Counts the jobs against the quota. @throws StemworkError `QUEUE_FULL`, `QUOTA_EXCEEDED`. */
  function refuseMore(app: string, { maxQueued = Infinity, quota }: Omit<CreateOptions, 'tx'>, more = 1): void {
    if (hasQueued(app, maxQueued - more + 1)) throw queueFull(maxQueued)
    usage.take(app, clock(), quota, more)
  }

  /** Whether that many jobs of the application are queued; looks at no more. */
  function hasQueued(app: string, limit: number): boolean {
    if (!Number.isFinite(limit)) return false
    if (limit <= 0) return true
    const found = database.get<{ count: number }>(
      "SELECT count(*) AS count FROM (SELECT 1 FROM jobs WHERE status = 'QUEUED' AND app = ? AND deleted = 0 LIMIT ?)",
      app,
      Math.ceil(limit),
    )
    return (found?.count ?? 0) >= limit
  }
}

/** The columns that a change can change, in the order of `insert` and `update`. */
function columns(job: JobRecord): Value[] {
  return [
    job.status,
    job.deleted ? 1 : 0,
    job.idempotency?.key ?? null,
    waitingSince(job),
    lapsesAt(job),
    removableAt(job),
    removableAt(job) === null ? null : resultBytes(job),
    deliverableAt(job),
    job.completedAt,
  ]
}

function ids(rows: unknown[]): string[] {
  return (rows as { id: string }[]).map((row) => row.id)
}

function parse(record: string): JobRecord {
  return parseRecord(jobRecordSchema, record)
}
