import { invalidOptions } from '../../../core/engine/errors.js'
import { alreadyExists } from '../../../core/engine/job/queue-limit.js'
import { Shares } from '../../../core/engine/limits/shares.js'
import { transition } from '../../../core/engine/job/transitions.js'
import type { JobStore } from '../../../core/engine/ports/job-store.js'
import type { JobEntries, JobLists, JobSweep } from '../shared/method-groups.js'
import { plainCopy } from '../shared/plain-copy.js'
import { repeatable } from '../shared/repeatable.js'
import type { PostgresClient, PostgresPool } from './database.js'
import { fillSearch } from './fill-search.js'
import { jobClaims } from './job-claims.js'
import { jobInserts } from './job-inserts.js'
import {
  countStatement,
  deliverableStatement,
  dueStatement,
  listStatement,
  recordBytesStatement,
  resultBytesStatement,
} from './job-lists.js'
import { columnText, nowSql } from './job-row.js'
import { limitedCreates } from './limited-creates.js'
import { postgresDocuments } from './postgres-documents.js'
import { postgresLedger } from './postgres-ledger.js'
import { StoredJobs } from './stored-jobs.js'
import { usedToday } from './usage.js'

/** Jobs in one table of the host's Postgres, for any number of processes. */
export function postgresJobs(pool: PostgresPool, schema: string, idempotencyMs: number): JobStore {
  const jobs = new StoredJobs(pool, schema)
  const connections = connectionShares(pool)
  return {
    traits: { scope: 'shared' },
    async time() {
      const [row] = await jobs.send(`SELECT ${nowSql}`, [])
      return Number(row?.[0])
    },
    documents: postgresDocuments(pool, schema),
    ledger: postgresLedger(schema, jobs.send),
    ...jobEntries(pool, schema, { jobs, connections, idempotencyMs }),
    ...jobClaims(pool, schema, jobs),
    ...jobLists(schema, jobs, connections),
    ...jobSweep(schema, jobs),
  }
}

/** Methods by which jobs enter the queue, for the first time or again, and change. */
function jobEntries(
  pool: PostgresPool,
  schema: string,
  { jobs, connections, idempotencyMs }: { jobs: StoredJobs; connections: Shares; idempotencyMs: number },
): JobEntries {
  const inserts = jobInserts(schema, idempotencyMs)
  const limited = limitedCreates(pool, schema, { inserts, connections, idempotencyMs })

  return {
    async create(given, { tx, maxQueued = Infinity, quota } = {}) {
      const job = plainCopy(given)
      const limits = { maxQueued, quota }
      if (tx !== undefined) return await limited.createIn(clientOf(tx), job, limits)
      if (job.idempotency || quota || maxQueued !== Infinity) return await limited.create(job, limits)
      const [created] = await connections.use(job.app, () => inserts.insertFree(jobs.sendPrepared, job.app, [job]))
      if (!created) throw alreadyExists(job.id)
      return { job: created, created: true }
    },

    async createAll(given, limits = {}) {
      const [first] = given
      return first ? await limited.createAll(first.app, plainCopy([...given]), limits) : []
    },

    async findByIdempotencyKey(app, key) {
      const found = await connections.use(app, () => inserts.findHolder(pool, app, key))
      return found?.holds ? found.job : undefined
    },

    async usage(app) {
      return (await connections.use(app, () => usedToday(jobs.send, schema, app))).used
    },

    async apply(id, given) {
      const change = plainCopy(given)
      if (change.kind !== 'retry')
        return await jobs.change(id, (job, now) => transition(job, change, now), {
          isRepeatable: repeatable.includes(change.kind),
          usage: 'usage' in change ? change.usage : undefined,
          known: 'token' in change ? jobs.held.under(id, change.token) : undefined,
        })
      const known = await jobs.read(id)
      if (!known) return undefined
      // Under the lock of the application's limited creates: no one else counts its queued jobs meanwhile.
      return await limited.underLock(known.job.app, change, (send, refused) => {
        const next: Parameters<StoredJobs['change']>[1] = (job, now) => {
          const retried = transition(job, change, now)
          if (retried && refused) throw refused
          return retried
        }
        return jobs.change(id, next, { send })
      })
    },
  }
}

function jobLists(schema: string, jobs: StoredJobs, connections: Shares): JobLists {
  const sum = (app: string, sql: string) =>
    connections.use(app, async () => Number((await jobs.sendPrepared(sql, [columnText(app)]))[0]?.[0] ?? 0))
  const fill = fillSearch(schema)
  // Queries without an application come from the operator or the engine.
  const ofApp = <Result>(app: string | undefined, work: () => Promise<Result>) =>
    app === undefined ? work() : connections.use(app, work)
  return {
    async get(id) {
      const job = (await jobs.read(id))?.job
      return job?.deleted ? undefined : job
    },

    list: (page) =>
      ofApp(page.app, async () => {
        await fill(jobs.sendPrepared, page)
        return await jobs.select((unreadable) => listStatement(schema, page, unreadable))
      }),

    count: (query, { max } = {}) =>
      ofApp(query.app, async () => {
        await fill(jobs.sendPrepared, query)
        const count = countStatement(schema, query, max)
        const [row] = count ? await jobs.rows(count) : []
        return Number(row?.[0] ?? 0)
      }),

    resultBytes: (app) => sum(app, resultBytesStatement(schema)),

    recordBytes: (app) => sum(app, recordBytesStatement(schema)),
  }
}

function jobSweep(schema: string, jobs: StoredJobs): JobSweep {
  const { send } = jobs
  return {
    async due(reason, limit) {
      if (limit <= 0) return []
      return await jobs.select((unreadable) => dueStatement(schema, reason, limit, unreadable))
    },

    async deliverable(page) {
      if (page.limit <= 0 || page.perApp <= 0) return []
      return await jobs.select((unreadable) => deliverableStatement(schema, page, unreadable))
    },

    async purge(target) {
      if ('id' in target) {
        const sql = `DELETE FROM ${schema}.jobs WHERE id = $1 AND deleted RETURNING id`
        return (await send(sql, [columnText(target.id)])).length > 0 ? [target.id] : []
      }
      const gone = await send(
        `DELETE FROM ${schema}.jobs WHERE id IN (
          SELECT id FROM ${schema}.jobs WHERE ended_at < $1 ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED
        ) RETURNING id`,
        [Math.ceil(target.endedBefore), Math.max(0, target.limit)],
      )
      return gone.map(([id]) => id ?? '')
    },

    unreadable: async () => jobs.unreadable,

    async beginFilePass(everyMs) {
      const [row] = await send(
        `UPDATE ${schema}.deployment SET pass = pass + 1, pass_at = ${nowSql}
        WHERE pass_at IS NULL OR abs(pass_at - ${nowSql}) >= $1::bigint RETURNING id, pass`,
        [Math.ceil(everyMs)],
      )
      return row && { deployment: row[0] ?? '', pass: Number(row[1]) }
    },
  }
}

function clientOf(tx: unknown): PostgresClient {
  if (typeof tx === 'object' && tx !== null && typeof (tx as { query?: unknown }).query === 'function')
    return tx as PostgresClient
  throw invalidOptions(
    '`tx` is not a client of pg. Pass the client on which your transaction was begun (`await pool.connect()`, then ' +
      '`BEGIN`).',
  )
}

/** The default of `pg`. */
const defaultMax = 10

/**
 * Divides half of the pool's connections among the applications whose jobs are created, listed and counted. The others
 * are for work that must go on whatever applications do: claims, leases and ends, and look-ups of keys and single jobs.
 */
export function connectionShares({ options }: Pick<PostgresPool, 'options'>): Shares {
  const total = Math.max(1, Math.floor((options?.max ?? defaultMax) / 2))
  return new Shares({ total, reserve: Math.min(1, total - 1) })
}
