import type { JobRecord } from '../../../core/engine/job/job.js'
import { transition } from '../../../core/engine/job/transitions.js'
import type { JobQuery } from '../../../core/engine/ports/job-query.js'
import type { JobPage, JobStore } from '../../../core/engine/ports/job-store.js'
import type { JobLists, JobSweep } from '../shared/method-groups.js'
import { repeatable } from '../shared/repeatable.js'
import { jobClaims } from './job-claims.js'
import { admit, jobCreates, type JobTables } from './job-creates.js'
import {
  countPassesMany,
  countSql,
  deliverableSql,
  dueSql,
  listSql,
  narrowPart,
  passesMany,
  type Stretch,
  stretchEndSql,
} from './job-query.js'
import { BatchIntake } from './batch-intake.js'
import { type FoundRow, jobRows, parse } from './job-rows.js'
import type { SqliteDatabase } from './sqlite-database.js'
import { sqliteDocuments } from './sqlite-documents.js'
import { sqliteLedger } from './sqlite-ledger.js'
import { usageTable } from './usage.js'
import { setTimeout as delay } from 'node:timers/promises'

/** Reads, changes and writes records without a break in between, in a process that has the file to itself. */
export function sqliteJobs(
  database: SqliteDatabase,
  { clock, idempotencyMs }: { clock: () => number; idempotencyMs: number },
): JobStore {
  const rows = jobRows(database)
  const tables = { database, rows, intake: new BatchIntake(database, rows), usage: usageTable(database), clock }
  return {
    traits: { scope: 'process' },
    time: async () => clock(),
    documents: sqliteDocuments(database, clock),
    ledger: sqliteLedger(database),
    ...jobCreates(tables, idempotencyMs),
    ...jobClaims(tables),
    ...jobLists(tables),
    ...jobChanges(tables),
    ...jobSweep(tables),
  }
}

function jobLists({ database, rows, intake }: JobTables): JobLists {
  const count = (query: JobQuery, max: number, stretch?: Stretch): number => {
    const { text, values } = countSql(query, max, stretch)
    return database.get<{ count: number }>(text, values)?.count ?? 0
  }

  /** Bytes that an application stores: sums that triggers maintain. */
  const kept = (column: 'bytes' | 'result_bytes', app: string) =>
    database.get<{ bytes: number }>(`SELECT ${column} AS bytes FROM kept_records WHERE app = ?`, [app])?.bytes ?? 0

  const isAboutFew = (query: JobQuery) => {
    const part = narrowPart(query)
    return part !== undefined && count(part, jobsAtOnce + 1) <= jobsAtOnce
  }

  return {
    async get(id) {
      await intake.settleJob(id)
      const row = database.get<FoundRow>('SELECT record FROM jobs WHERE id = ? AND deleted = 0', [id])
      return row && parse(row.record)
    },

    async list(page) {
      await intake.settle(page.app)
      if (!passesMany(page) || isAboutFew(page)) return rows.select((unreadable) => listSql(page, unreadable))
      const found: JobRecord[] = []
      let { offset = 0 } = page
      await inStretches(database, page, (stretch) => {
        const passed = offset > 0 ? count(page, offset + 1, stretch) : 1
        if (passed > offset) {
          const rest = { ...page, limit: page.limit - found.length, offset }
          found.push(...rows.select((unreadable) => listSql(rest, unreadable, stretch)))
        }
        offset = Math.max(0, offset - passed)
        return found.length >= page.limit
      })
      return found
    },

    async count(query, { max = Infinity } = {}) {
      await intake.settle(query.app)
      if (!countPassesMany(query) || isAboutFew(query)) return count(query, max)
      let found = 0
      await inStretches(database, { ...query, after: undefined }, (stretch) => {
        found += count(query, max - found, stretch)
        return found >= max
      })
      return found
    },

    resultBytes: async (app) => kept('result_bytes', app),

    recordBytes: async (app) => kept('bytes', app),
  }
}

function jobChanges(tables: JobTables): Pick<JobStore, 'apply'> {
  const { database, rows, intake, usage, clock } = tables
  return {
    async apply(id, change) {
      await intake.settleJob(id)
      const changed = database.transaction(() => {
        const job = rows.read(id)
        const next = job && transition(job, change, clock())
        if (!next) return undefined
        if (change.kind === 'retry') admit(tables, next.app, change)
        if ('usage' in change && change.usage) usage.add(next.app, clock(), change.usage)
        return rows.replace(next, change.kind === 'heartbeat')
      })
      if (changed && !repeatable.includes(change.kind)) await database.durable()
      return changed
    },
  }
}

/** As bytes: the driver cuts off a text at its first U+0000. */
const returningId = 'RETURNING CAST(id AS BLOB) AS id'
interface PurgedRow {
  id: ArrayBuffer
}

function jobSweep({ database, rows, clock }: JobTables): JobSweep {
  return {
    due: async (reason, limit) =>
      rows.select((unreadable) => dueSql(reason, clock(), { unreadable, limit: Math.max(limit, 0) })),

    deliverable: async (page) => rows.select((unreadable) => deliverableSql(clock(), page, unreadable)),

    async purge(target) {
      const gone =
        'id' in target
          ? database.all<PurgedRow>(`DELETE FROM jobs WHERE id = ? AND deleted = 1 ${returningId}`, [target.id])
          : database.all<PurgedRow>(
              `DELETE FROM jobs WHERE id IN (
                SELECT id FROM jobs WHERE completed_at < ? AND deleted = 0 ORDER BY completed_at LIMIT ?
              ) ${returningId}`,
              [target.endedBefore, Math.max(target.limit, 0)],
            )
      return gone.map(({ id }) => Buffer.from(id).toString())
    },

    unreadable: async () => rows.unreadable,

    async beginFilePass(everyMs) {
      const now = clock()
      const pass = database.transaction(() =>
        database.get<{ deployment: string; pass: number }>(
          `UPDATE deployment SET pass = pass + 1, pass_at = ?1 WHERE pass_at IS NULL
          OR abs(pass_at - ?1) >= ?2 RETURNING id AS deployment, pass`,
          [now, everyMs],
        ),
      )
      if (pass) await database.durable()
      return pass
    },
  }
}

/** Jobs in a stretch, which takes up to 5 ms: where no index helps, each job is read until enough are found. */
export const jobsAtOnce = 1000
/** Rest after each stretch, as a multiple of its time, for other work. */
const restShare = 4

/**
 * Goes through the jobs of an application, or of all, in stretches, newest first.
 *
 * @param page when the jobs were created, and after which job they come
 * @param look returns whether it has found enough
 */
export async function inStretches(
  database: SqliteDatabase,
  page: Pick<JobPage, 'app' | 'after' | 'createdAfter' | 'createdBefore'>,
  look: (stretch: Stretch) => boolean,
): Promise<void> {
  const { app, createdAfter = -Infinity, createdBefore } = page
  const { after = createdBefore === undefined ? undefined : { createdAt: createdBefore, id: '' } } = page
  for (let from = after; ;) {
    const startedAt = performance.now()
    const { text, values } = stretchEndSql(app, from, jobsAtOnce)
    const last = database.get<NonNullable<JobPage['after']>>(text, values)
    if (look({ after: from, last }) || !last || last.createdAt < createdAfter) return
    from = last
    await delay(restShare * (performance.now() - startedAt))
  }
}
