import { StemworkError } from '../../../core/engine/errors.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { servesPool } from '../../../core/engine/job/pool.js'
import { alreadyExists, queueFull } from '../../../core/engine/job/queue-limit.js'
import type { Usage } from '../../../core/engine/job/quota.js'
import { claim, type ClaimRequest, type JobChange, transition } from '../../../core/engine/job/transitions.js'
import type { Claimable, JobStore } from '../../../core/engine/ports/job-store.js'
import { plainCopy } from '../shared/plain-copy.js'
import { repeatable } from '../shared/repeatable.js'
import { UnreadableRows } from '../shared/unreadable-rows.js'
import {
  type PostgresClient,
  type PostgresPool,
  preparedStatement,
  query,
  type Row,
  statement,
  transaction,
} from './database.js'
import { type HeldJob, HeldJobs } from './held-jobs.js'
import { backlogStatements, readBacklog } from './backlog.js'
import { type CreatedJob, jobInserts } from './job-inserts.js'
import { countStatement, dueStatement, listStatement } from './job-lists.js'
import { limitedCreates } from './limited-creates.js'
import { columnText, nowSql, parseStored, type StoredJob } from './job-row.js'
import { jobUpdates } from './job-updates.js'
import { aheadStatement, schedulingRules } from './scheduling-rules.js'
import { postgresDocuments } from './postgres-documents.js'
import { claimNextStatement, lockClaims, tidyTurns } from './turns.js'
import { usageTable } from './usage.js'

/** Claims after which it is worth looking for applications without waiting jobs: each leaves one at most. */
const claimsBetweenTidying = 50

/** A change as a pure function of the record and the database's time; `undefined`: it does not apply. */
type Change = (job: JobRecord, now: number) => JobRecord | undefined

interface ChangeOptions {
  isRepeatable?: boolean
  usage?: Partial<Usage>
  known?: HeldJob
  send?: Send
}

type Send = (text: string, values: unknown[]) => Promise<Row[]>

/** Jobs in one table of the host's Postgres, for any number of processes. */
export function postgresJobs(pool: PostgresPool, schema: string, idempotencyMs: number): JobStore {
  const run = (text: string, values: unknown[]) => statement(pool, text, values)
  const runPrepared = (text: string, values: unknown[]) => preparedStatement(pool, text, values)
  const inserts = jobInserts(schema, idempotencyMs)
  const limited = limitedCreates(pool, schema, inserts)
  const replace = jobUpdates(schema)
  const claimNext = claimNextStatement(schema)
  const read = `SELECT ${nowSql}, version, record, claims FROM ${schema}.jobs WHERE id = $1`
  const rules = schedulingRules(schema)
  const ahead = aheadStatement(schema)
  const usage = usageTable(schema)
  const backlogSql = backlogStatements(schema)
  /** Whether the last claim found limits of running jobs. */
  let isLimited = false
  const unreadable = new UnreadableRows()
  const held = new HeldJobs()
  let untidyClaims = 0

  return {
    traits: { scope: 'shared' },

    async create(given, { tx, maxQueued = Infinity, quota } = {}) {
      const job = plainCopy(given)
      const limits = { maxQueued, quota }
      if (tx !== undefined) return await limited.createIn(clientOf(tx), job, limits)
      if (quota || (job.idempotency && maxQueued !== Infinity)) return await limited.createCounted(job, limits)
      if (maxQueued === Infinity) return job.idempotency ? await inserts.insertOrFind(pool, job) : await insertNew(job)
      const outcome = await limited.create({ job, maxQueued })
      if (outcome === 'full') throw queueFull(maxQueued)
      if (outcome === 'taken') throw alreadyExists(job.id)
      return { job: outcome, created: true }
    },

    async createAll(jobs, limits = {}) {
      const [first] = jobs
      return first ? await limited.createAll(first.app, plainCopy([...jobs]), limits) : []
    },

    async usage(app) {
      return (await usage.read(run, app)).used
    },

    async backlog() {
      const [waiting, running] = await Promise.all([run(backlogSql.waiting, []), run(backlogSql.running, [])])
      return readBacklog(waiting, running)
    },

    documents: postgresDocuments(pool, schema),

    async findByIdempotencyKey(app, key) {
      const found = await inserts.findHolder(pool, app, key)
      return found?.holds ? found.job : undefined
    },

    async get(id) {
      const job = (await readStored(id))?.job
      return job?.deleted ? undefined : job
    },

    async list(page) {
      for (;;) {
        const list = listStatement(schema, page, unreadable.ids)
        const rows = list ? await run(list.text, list.values) : []
        const jobs = readable(rows)
        if (jobs.length === rows.length) return jobs
      }
    },

    async count(query, { max } = {}) {
      const count = countStatement(schema, query, max)
      const [row] = count ? await run(count.text, count.values) : []
      return Number(row?.[0] ?? 0)
    },

    async resultBytes(app) {
      // The second sum is over rows of older nodes. The functions for json refuse a text in which U+0000 is escaped
      // anywhere.
      const [row] = await run(
        `SELECT (SELECT coalesce(sum(result_bytes), 0) FROM ${schema}.jobs WHERE app = $1
          AND removable_at IS NOT NULL) +
          (SELECT coalesce(sum((output.value ->> 'bytes')::numeric), 0) FROM ${schema}.jobs,
            json_each(replace(record::text, '\\u0000', '\\ufffd')::json -> 'outputs') AS output
          WHERE app = $1 AND removable_at IS NOT NULL AND result_bytes IS NULL
            AND output.value ->> 'copied' IS DISTINCT FROM 'true')`,
        [columnText(app)],
      )
      return Number(row?.[0] ?? 0)
    },

    claim({ id, exceptApps, workflows, labels, ...request }) {
      return id === undefined
        ? claimInTurn(request, { exceptApps, workflows, labels })
        : claimNamed(id, request, { exceptApps, workflows, labels })
    },

    rules: () => rules.read(run),

    changeRule: (target, change) => rules.change(run, target, change),

    async ahead(id, { max }) {
      const [row] = await run(ahead, [columnText(id), max])
      return row && Number(row[0])
    },

    async apply(id, jobChange) {
      const own = plainCopy(jobChange)
      if (own.kind === 'retry') return await retry(id, own)
      const known = 'token' in own ? held.under(id, own.token) : undefined
      return await change(id, (job, now) => transition(job, own, now), {
        isRepeatable: repeatable.includes(own.kind),
        usage: 'usage' in own ? own.usage : undefined,
        known,
      })
    },

    async due(kind, limit, { exceptApps = [] } = {}) {
      if (limit <= 0) return []
      for (;;) {
        const due = dueStatement(schema, kind, limit, exceptApps, unreadable.ids)
        const rows = await run(due.text, due.values)
        const jobs = readable(rows)
        if (jobs.length === rows.length) return jobs
      }
    },

    async purge(target) {
      const gone =
        'id' in target
          ? await run(`DELETE FROM ${schema}.jobs WHERE id = $1 AND deleted RETURNING id`, [columnText(target.id)])
          : await run(
              `DELETE FROM ${schema}.jobs WHERE id IN (
                SELECT id FROM ${schema}.jobs WHERE ended_at < $1 ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED
              ) RETURNING id`,
              [Math.ceil(target.endedBefore), Math.max(0, target.limit)],
            )
      if ('id' in target) return gone.length > 0 ? [target.id] : []
      return gone.map(([id]) => id ?? '')
    },

    async unreadable() {
      return unreadable.ids
    },

    async beginFilePass(everyMs) {
      const [row] = await run(
        `UPDATE ${schema}.deployment SET pass = pass + 1, pass_at = ${nowSql}
        WHERE pass_at IS NULL OR pass_at <= ${nowSql} - $1::bigint RETURNING id, pass`,
        [Math.ceil(everyMs)],
      )
      return row && { deployment: row[0] ?? '', pass: Number(row[1]) }
    },
  }

  async function insertNew(job: JobRecord): Promise<CreatedJob> {
    const [created] = await inserts.insertFree(runPrepared, job.app, [job])
    if (!created) throw alreadyExists(job.id)
    return { job: created, created: true }
  }

  /**
   * Computes the next record outside the database and writes it only over what it was computed from, until it succeeds.
   */
  async function change(
    id: string,
    next: Change,
    { isRepeatable = false, usage, known, send = runPrepared }: ChangeOptions = {},
  ): Promise<JobRecord | undefined> {
    let stored: (StoredJob & { now: number }) | undefined = known
    for (let nonce = known?.nonce; (stored ??= await readStored(id, send)); stored = nonce = undefined) {
      const changed = next(stored.job, stored.now)
      if (!changed) break
      if (await replace(send, stored, changed, { isRepeatable, nonce, usage })) {
        held.keep({ job: changed, version: stored.version + 1 }, stored.now)
        return plainCopy(changed)
      }
    }
    held.forget(id)
    return undefined
  }

  /** Under the lock of the application's limited creates: nobody else counts its queued jobs meanwhile. */
  async function retry(id: string, retried: Extract<JobChange, { kind: 'retry' }>): Promise<JobRecord | undefined> {
    const known = await readStored(id)
    if (!known) return undefined
    return await limited.underLock(known.job.app, retried, (send, refused) =>
      change(
        id,
        (job, now) => {
          const next = transition(job, retried, now)
          if (next && refused) throw refused
          return next
        },
        { send },
      ),
    )
  }

  async function readStored(id: string, send: Send = runPrepared): Promise<(StoredJob & { now: number }) | undefined> {
    const [row] = await send(read, [columnText(id)])
    if (!row) return undefined
    const [now, ...stored] = row
    return { ...parseStored(stored), now: Number(now) }
  }

  async function claimInTurn(
    { owner, leaseMs, nonce = '' }: ClaimRequest,
    { exceptApps = [], workflows, labels }: Omit<Claimable, 'id'>,
  ): Promise<JobRecord | undefined> {
    const apps = exceptApps.map((app) => columnText(app))
    const wanted = workflows?.map((workflow) => columnText(workflow)) ?? null
    const ask = async (send: Send, isLocked: boolean) => {
      const values = [
        columnText(owner),
        Math.ceil(leaseMs),
        nonce,
        apps,
        unreadable.ids,
        wanted,
        isLocked,
        labels ?? null,
      ]
      const [row] = await send(claimNext, values)
      return { row: row?.[0] === null ? undefined : row, isLimited: row?.[4] === 't' }
    }
    let row: Row | undefined
    let job: JobRecord | undefined
    do {
      let answer = isLimited ? undefined : await ask(runPrepared, false)
      if (!answer || (answer.isLimited && !answer.row)) answer = await underLock((send) => ask(send, true))
      ;({ row, isLimited } = answer)
      job = row && readable([row])[0]
    } while (row && !job)
    if (row && job?.lease) {
      untidyClaims++
      held.keep({ job, version: Number(row[0]) }, job.lease.until - Math.ceil(leaseMs))
    }
    if (untidyClaims >= (row ? claimsBetweenTidying : 1)) {
      untidyClaims = 0
      // Only speed depends on it, and the next claims repeat it.
      await tidyTurns(pool, schema).catch(() => {})
    }
    return job && plainCopy(job)
  }

  async function claimNamed(
    id: string,
    request: ClaimRequest,
    { exceptApps, workflows, labels }: Omit<Claimable, 'id'>,
  ): Promise<JobRecord | undefined> {
    const isWanted = ({ app, workflow, pool: needed }: JobRecord) =>
      !exceptApps?.includes(app) && workflows?.includes(workflow) !== false && servesPool(labels, needed)
    const grant = (send = runPrepared) =>
      change(id, (job, now) => (isWanted(job) ? claim(job, request, now) : undefined), { send })
    const known = await rules.read(run)
    if (known.length === 0) return await grant()
    return await underLock(async (send) => {
      const stored = await readStored(id, send)
      return stored && !(await rules.holdBack(send, known, stored.job)) ? await grant(send) : undefined
    })
  }

  /** In a transaction in which nobody else claims under limits. */
  function underLock<Result>(work: (send: Send) => Promise<Result>): Promise<Result> {
    return transaction(pool, async (client) => {
      await lockClaims(client, schema)
      return await work((text, values) => query(client, text, values))
    })
  }

  /** A damaged record is an error of its own job, not of those after it. */
  function readable(rows: readonly Row[]): JobRecord[] {
    return unreadable.readable(
      rows,
      (row) => row[3] ?? '',
      (row) => parseStored(row).job,
    )
  }
}

function clientOf(tx: unknown): PostgresClient {
  if (typeof tx === 'object' && tx !== null && typeof (tx as { query?: unknown }).query === 'function')
    return tx as PostgresClient
  throw new StemworkError(
    'INVALID_OPTIONS',
    '`tx` is not a client of pg. Pass the client on which your transaction was begun (`await pool.connect()`, then ' +
      '`BEGIN`).',
  )
}
