import { StemworkError } from '../../../core/engine/errors.js'
import { isTerminal, type JobRecord } from '../../../core/engine/job/job.js'
import { queueFull } from '../../../core/engine/job/queue-limit.js'
import { claim, type ClaimRequest, transition } from '../../../core/engine/job/transitions.js'
import type { JobStore } from '../../../core/engine/ports/job-store.js'
import { batched } from '../shared/batched.js'
import { copyPlain, copyRecord } from '../shared/record-copy.js'
import { DatabaseClock } from './database-clock.js'
import {
  arrayOf,
  type PostgresClient,
  type PostgresPool,
  preparedStatement,
  query,
  type Row,
  statement,
  transaction,
} from './database.js'
import { JobCounts } from './job-counts.js'
import { jobInserts, alreadyExists, newJob, type NewJob } from './job-inserts.js'
import { type LimitedJob, limitedCreates } from './limited-creates.js'
import { countStatement, dueStatement, lapsedSql, listStatement, waitingSql } from './job-lists.js'
import { columnText, nowSql, parseRecord, parseStored, type StoredJob } from './job-row.js'
import { jobUpdates, type Replacement } from './job-updates.js'
import { KnownRecords } from './known-records.js'

const batch = {
  maxItems: 200,
  parallel: 2,
  isItemsFault: (error: unknown) => StemworkError.is(error) && !error.retryable,
}

/** A change as a pure function of the record and the database's time; `undefined`: it does not apply. */
type Change = (job: JobRecord, now: number) => JobRecord | undefined

/** Jobs in one table of the host's Postgres, for any number of processes. */
export function postgresJobs(pool: PostgresPool, schema: string, idempotencyMs: number): JobStore {
  const run = (text: string, values: unknown[]) => statement(pool, text, values)
  const runPrepared = (text: string, values: unknown[]) => preparedStatement(pool, text, values)
  const clock = new DatabaseClock()
  const known = new KnownRecords()
  const counts = new JobCounts(pool, schema)
  const inserts = jobInserts(schema, idempotencyMs)
  const { insertFree, insertOrFind } = inserts
  const limited = limitedCreates(pool, schema, { inserts, batch, onWrite: (app) => counts.noteWrite([app]) })
  const replaceAll = jobUpdates(schema)

  const insert = batched(async (jobs: NewJob[]) => {
    const created = await insertFree(runPrepared, jobs)
    for (const createdAt of created) if (createdAt !== undefined) clock.note(createdAt)
    counts.noteWrite(jobs.map(({ job }) => job.app))
    return created
  }, batch)

  const read = batched(async (ids: string[]) => {
    const rows = await runPrepared(
      `SELECT id, ${nowSql}, version, record FROM ${schema}.jobs WHERE id = ANY($1::text[])`,
      [arrayOf([...new Set(ids)].map((id) => columnText(id)))],
    )
    const found = new Map(rows.map(([id, now, ...stored]) => [id, { now: Number(now), stored }]))
    return ids.map((id) => found.get(columnText(id)))
  }, batch)

  const replace = batched((replacements: Replacement[]) => replaceIn(runPrepared, replacements), batch)
  const claimNext = batched(claimLongestWaiting, { ...batch, parallel: 1 })

  return {
    traits: { scope: 'shared' },

    async create(job, { tx, maxQueued = Infinity } = {}) {
      const added = newJob(job)
      if (tx !== undefined) return await limited.createIn(clientOf(tx), { added, maxQueued })
      if (job.idempotency) {
        // Alone: a create may have to wait for a transaction of some host that holds the same key, and nobody else should.
        const made =
          maxQueued === Infinity ? await insertOrFind(pool, added) : await limited.createKeyed({ added, maxQueued })
        counts.noteWrite([job.app])
        return made
      }
      const createdAt = maxQueued === Infinity ? await insert(added) : await insertLimited({ added, maxQueued })
      if (createdAt === undefined) throw alreadyExists(job.id)
      added.job.createdAt = createdAt
      known.enter(added.job, 1)
      return { job: copyRecord(added.job), created: true }
    },

    async findByIdempotencyKey(app, key) {
      const found = await inserts.findHolder(pool, app, key)
      return found?.holds ? found.job : undefined
    },

    async get(id) {
      const job = (await readStored(id))?.job
      return job?.deleted ? undefined : job
    },

    async list(page) {
      const list = listStatement(schema, page)
      const rows = list ? await run(list.text, list.values) : []
      return rows.map(([record]) => parseRecord(record))
    },

    async count({ app, statuses, ...rest }) {
      if (statuses?.length === 0) return 0
      if (Object.values(rest).every((value) => value === undefined)) return await counts.count({ app, statuses })
      const count = countStatement(schema, { app, statuses, ...rest })
      const [total] = count ? await run(count.text, count.values) : []
      return Number(total?.[0] ?? 0)
    },

    async resultBytes(app) {
      // The functions for json refuse a text in which U+0000 is escaped anywhere.
      const [row] = await run(
        `SELECT coalesce(sum((output.value ->> 'bytes')::numeric), 0) FROM ${schema}.jobs,
          json_each(replace(record::text, '\\u0000', '\\ufffd')::json -> 'outputs') AS output
        WHERE app = $1 AND removable_at IS NOT NULL AND output.value ->> 'copied' IS DISTINCT FROM 'true'`,
        [columnText(app)],
      )
      return Number(row?.[0] ?? 0)
    },

    claim({ id, ...request }) {
      return id === undefined ? claimNext(request) : change(id, (job, now) => claim(job, request, now))
    },

    async apply(id, jobChange) {
      const own = copyPlain(jobChange)
      return await change(id, (job, now) => transition(job, own, now))
    },

    async due(kind, limit) {
      if (limit <= 0) return []
      const due = dueStatement(schema, kind, limit)
      return (await run(due.text, due.values)).map((row) => parseStored(row).job)
    },

    async purge(target) {
      if ('id' in target) {
        const gone = await run(`DELETE FROM ${schema}.jobs WHERE id = $1 AND deleted RETURNING id`, [
          columnText(target.id),
        ])
        return gone.length > 0 ? [target.id] : []
      }
      const gone = await run(
        `WITH gone AS (
          DELETE FROM ${schema}.jobs WHERE id IN (SELECT id FROM ${schema}.jobs WHERE ended_at < $1 ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED)
          RETURNING id, app, status
        ),
        counted AS (INSERT INTO ${schema}.job_counts (app, status, delta) SELECT app, status, -count(*) FROM gone GROUP BY app, status)
        SELECT id, app FROM gone`,
        [Math.ceil(target.endedBefore), Math.max(0, target.limit)],
      )
      counts.noteWrite(gone.map(([, app]) => app ?? ''))
      return gone.map(([id]) => id ?? '')
    },
  }

  async function insertLimited(job: LimitedJob): Promise<number | undefined> {
    const outcome = await limited.create(job)
    if (outcome === 'full') throw queueFull(job.maxQueued)
    if (outcome === 'taken') return undefined
    clock.note(outcome.createdAt)
    return outcome.createdAt
  }

  /**
   * Computes the next record outside the database and writes it only over the version that it was computed from, as often as it
   * takes. The record that this process wrote last saves the read; "does not apply" is believed of a record just read only.
   */
  async function change(id: string, next: Change): Promise<JobRecord | undefined> {
    const now = clock.now()
    const recent = now === undefined ? undefined : known.take(id)
    const nextOfRecent = recent && now !== undefined ? next(recent.job, now) : undefined
    if (recent && nextOfRecent && (await replaced(recent, nextOfRecent))) return copyRecord(nextOfRecent)
    for (;;) {
      const stored = await readStored(id)
      const nextOfStored = stored && next(stored.job, stored.now)
      if (!stored || !nextOfStored) return undefined
      if (await replaced(stored, nextOfStored)) return copyRecord(nextOfStored)
    }
  }

  async function replaced({ job, version }: StoredJob, next: JobRecord): Promise<boolean> {
    const made = await replace({ previous: job, version, next, json: JSON.stringify(next) })
    if (made && !isTerminal(next) && !next.deleted) known.enter(next, version + 1)
    return made
  }

  async function readStored(id: string): Promise<(StoredJob & { now: number }) | undefined> {
    const found = await read(id)
    if (!found) return undefined
    clock.note(found.now)
    return { ...parseStored(found.stored), now: found.now }
  }

  async function replaceIn(
    runner: (text: string, values: unknown[]) => Promise<Row[]>,
    replacements: Replacement[],
  ): Promise<boolean[]> {
    const made = await replaceAll(runner, replacements, (epochMs) => clock.note(epochMs))
    counts.noteWrite(
      replacements
        .filter(({ previous, next }) => previous.status !== next.status || next.deleted)
        .map(({ next }) => next.app),
    )
    return made
  }

  /** One job a request, as far as there are any. Nodes that claim at the same time skip each other's rows instead of waiting. */
  async function claimLongestWaiting(requests: ClaimRequest[]): Promise<(JobRecord | undefined)[]> {
    const claims = await transaction(pool, async (client) => {
      const limit = [requests.length]
      const found = await query(client, `${waitingSql(schema)} LIMIT $1 FOR UPDATE SKIP LOCKED`, limit)
      found.push(...(await query(client, `${lapsedSql(schema)} LIMIT $1 FOR UPDATE SKIP LOCKED`, limit)))
      if (found.length === 0) return []
      const [now] = await query(client, `SELECT ${nowSql}`)
      const longestFirst = found.sort(([, , a], [, , b]) => Number(a) - Number(b)).map((row) => parseStored(row))
      const claimed = requests.map((request, index): Replacement | undefined => {
        const stored = longestFirst[index]
        const next = stored && claim(stored.job, request, Number(now?.[0]))
        return next && { previous: stored.job, version: stored.version, next, json: JSON.stringify(next) }
      })
      await replaceIn(
        (text, values) => query(client, text, values),
        claimed.filter((replacement) => replacement !== undefined),
      )
      return claimed
    })
    return requests.map((_, index) => {
      const made = claims[index]
      if (!made) return undefined
      known.enter(made.next, made.version + 1)
      return copyRecord(made.next)
    })
  }
}

function clientOf(tx: unknown): PostgresClient {
  if (typeof tx === 'object' && tx !== null && typeof (tx as { query?: unknown }).query === 'function')
    return tx as PostgresClient
  throw new StemworkError(
    'INVALID_OPTIONS',
    '`tx` is not a client of pg. Pass the client on which your transaction was begun (`await pool.connect()`, then `BEGIN`).',
  )
}
