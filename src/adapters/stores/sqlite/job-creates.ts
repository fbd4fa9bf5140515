import type { CreateOptions } from '../../../core/engine/ports/job-store.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { alreadyExists, queueFull } from '../../../core/engine/job/queue-limit.js'
import type { JobCreates } from '../shared/method-groups.js'
import { refuseTransaction } from '../shared/no-transactions.js'
import type { BatchIntake } from './batch-intake.js'
import { type FoundRow, type JobRows, parse } from './job-rows.js'
import type { SqliteDatabase } from './sqlite-database.js'
import { writeDocument } from './sqlite-documents.js'
import type { UsageTable } from './usage.js'

/** Parts that the groups of the store's methods share. */
export interface JobTables {
  database: SqliteDatabase
  rows: JobRows
  intake: BatchIntake
  usage: UsageTable
  clock: () => number
}

export function jobCreates(tables: JobTables, idempotencyMs: number): JobCreates {
  const { database, rows, intake, usage, clock } = tables

  return {
    async create(job, { tx, ...limits } = {}) {
      refuseTransaction('The SQLite store', tx)
      const made = database.transaction(() => {
        const now = clock()
        if (job.idempotency) {
          const first = withIdempotencyKey(job.app, job.idempotency.key, now)
          if (first) return { job: first, created: false }
          // An expired key is taken from its job, so that the new job can have it.
          database.write('UPDATE jobs SET idempotency_key = NULL WHERE app = ? AND idempotency_key = ?', [
            job.app,
            job.idempotency.key,
          ])
        }
        if (intake.has(job.id)) throw alreadyExists(job.id)
        admit(tables, job.app, limits)
        return { job: rows.add({ ...job, createdAt: now }), created: true }
      })
      await database.durable()
      return made
    },

    async createAll(jobs, { document, ...limits } = {}) {
      const [first] = jobs
      if (!first) return []
      const all = await intake.written(jobs.map((job) => ({ ...job, createdAt: clock() })))
      const isMade = await intake.inTurn(() => {
        const isStored = database.transaction(() => {
          if (document && writeDocument(database, document, document.version, clock()) === undefined) return false
          admit(tables, first.app, limits, jobs.length)
          intake.accept(first.app, all)
          return true
        })
        if (isStored) intake.opened(first.app, all)
        return isStored
      })
      await intake.settle(first.app)
      await database.durable()
      return isMade ? all.map(({ job }) => job) : undefined
    },

    findByIdempotencyKey: async (app, key) => withIdempotencyKey(app, key, clock()),

    usage: async (app) => usage.read(app, clock()),
  }

  /** The job that the key points at, if that is still valid. */
  function withIdempotencyKey(app: string, key: string, now: number): JobRecord | undefined {
    const row = database.get<FoundRow & { created_at: number }>(
      'SELECT created_at, record FROM jobs WHERE app = ? AND idempotency_key = ?',
      [app, key],
    )
    return row && row.created_at + idempotencyMs > now ? parse(row.record) : undefined
  }
}

/** Counts more jobs against the quota. @throws StemworkError `QUEUE_FULL`, `QUOTA_EXCEEDED`. */
export function admit(
  { database, intake, usage, clock }: JobTables,
  app: string,
  { maxQueued = Infinity, quota }: Omit<CreateOptions, 'tx'>,
  more = 1,
): void {
  if (hasQueued(database, app, maxQueued - more + 1 - intake.count(app))) throw queueFull(maxQueued)
  usage.take(app, clock(), quota, more)
}

/** Whether at least `limit` jobs of the application are queued; looks at no more. */
function hasQueued(database: SqliteDatabase, app: string, limit: number): boolean {
  if (!Number.isFinite(limit)) return false
  if (limit <= 0) return true
  const found = database.get<{ count: number }>(
    "SELECT count(*) AS count FROM (SELECT 1 FROM jobs WHERE status = 'QUEUED' AND app = ? AND deleted = 0 LIMIT ?)",
    [app, Math.ceil(limit)],
  )
  return (found?.count ?? 0) >= limit
}
