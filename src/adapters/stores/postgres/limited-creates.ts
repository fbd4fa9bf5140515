import { StemworkError } from '../../../core/engine/errors.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { alreadyExists, queueFull } from '../../../core/engine/job/queue-limit.js'
import type { Shares } from '../../../core/engine/limits/shares.js'
import type { CreateAllOptions } from '../../../core/engine/ports/job-store.js'
import { batched } from '../shared/batched.js'
import {
  type PostgresClient,
  type PostgresPool,
  preparedStatement,
  query,
  type Row,
  type Send,
  sender,
  statement,
  transaction,
} from './database.js'
import { type Limits, lockApp, refusalOf } from './create-limits.js'
import { type CreatedJob, type JobInserts, rowOf } from './job-inserts.js'
import { documentWrites } from './postgres-documents.js'
import { addUsage, quotaExceeded } from '../../../core/engine/job/quota.js'
import { addJobs } from './add-jobs-function.js'
import { columnText, parseRecord } from './job-row.js'
import { plannedCall } from './planned-functions.js'
import { countAdded, parseUsage } from './usage.js'

/** Creates that come together are one statement: a second one would wait for the lock. */
const batch = {
  maxItems: 200,
  parallel: 1,
  isItemsFault: (error: unknown) => StemworkError.is(error) && !error.retryable,
}

/** Creates of jobs whose application may have a limited number of queued ones, or a quota. */
export function limitedCreates(
  pool: PostgresPool,
  schema: string,
  { inserts, connections, idempotencyMs }: { inserts: JobInserts; connections: Shares; idempotencyMs: number },
) {
  const transactionOf = <Result>(app: string, work: (client: PostgresClient) => Promise<Result>) =>
    connections.use(app, () => transaction(pool, work))
  const lock = (client: PostgresClient, app: string) =>
    query(client, `SELECT ${lockApp(schema, '$1::text')}`, [columnText(app)])
  const write = documentWrites(schema)
  const addJobs = addedJobs(pool, schema, idempotencyMs)
  const lanes = new Map<string, { create: (job: JobRecord) => Promise<AddedJob>; waiting: number }>()

  return {
    /** @throws StemworkError why it was not created. */
    async create(job: JobRecord, given: Limits): Promise<CreatedJob> {
      const { app } = job
      const add = (jobs: JobRecord[]) => connections.use(app, () => addJobs(app, jobs, given))
      if (job.idempotency) return createdOr((await add([job]))[0] ?? alreadyExists(job.id))
      const name = JSON.stringify([app, given])
      const lane = lanes.get(name) ?? { create: batched(add, batch), waiting: 0 }
      lanes.set(name, lane)
      lane.waiting++
      try {
        return createdOr(await lane.create(job))
      } finally {
        if (--lane.waiting === 0) lanes.delete(name)
      }
    },

    /** Creates all jobs, or none. They belong to one application and have no idempotency keys. */
    async createAll(
      app: string,
      jobs: readonly JobRecord[],
      { document, ...given }: CreateAllOptions,
    ): Promise<JobRecord[] | undefined> {
      return await transactionOf(app, async (client) => {
        await lock(client, app)
        // First: a repeated request finds the document that the first one wrote, and needs no room.
        const isWritten = !document || (await write(sender(client), document, document.version)) !== undefined
        if (!isWritten) return undefined
        const refused = await refusalOf(client, schema, app, { ...given, more: jobs.length })
        if (refused) throw refused
        const created = await inserts.insertFree(sender(client), app, jobs)
        if (given.quota) await countAdded(sender(client), schema, app, jobs.length)
        return created.map((job, index) => {
          if (job) return job
          throw alreadyExists(jobs[index]?.id ?? '')
        })
      })
    },

    /**
     * Runs work that adds a queued job, unless there is no room for it, while no one else counts the application's
     * queued jobs.
     */
    underLock(
      app: string,
      given: Limits,
      work: (send: Send, refused: StemworkError | undefined) => Promise<JobRecord | undefined>,
    ): Promise<JobRecord | undefined> {
      return transactionOf(app, async (client) => {
        await lock(client, app)
        const changed = await work(sender(client), await refusalOf(client, schema, app, given))
        if (changed && given.quota) await countAdded(sender(client), schema, app, 1)
        return changed
      })
    },

    /**
     * Creates the job in the host's transaction, which may last: without the lock. The quota counts it at once, so that
     * no one waits for the host.
     */
    async createIn(client: PostgresClient, job: JobRecord, given: Limits): Promise<CreatedJob> {
      const outcome = await inserts.insertOrFind(client, job, () => refusalOf(client, schema, job.app, given))
      if (outcome.created && given.quota)
        await countAdded((text, values) => statement(pool, text, values), schema, job.app, 1)
      return outcome
    },
  }
}

function createdOr(added: AddedJob): CreatedJob {
  if (added instanceof StemworkError) throw added
  return added
}

/** The job that was added, or why it was not. */
export type AddedJob = CreatedJob | StemworkError

/** Adds jobs of one application in one statement: jobs without idempotency keys, or a single job. */
export function addedJobs(pool: PostgresPool, schema: string, idempotencyMs: number) {
  const call = plannedCall(pool, schema, addJobs(schema))
  return async (app: string, jobs: readonly JobRecord[], limits: Limits): Promise<AddedJob[]> => {
    const { maxQueued = Infinity, quota } = limits
    const values = [
      columnText(app),
      JSON.stringify(jobs.map(rowOf)),
      columnText(jobs[0]?.idempotency?.key ?? null),
      idempotencyMs,
      maxQueued === Infinity ? null : Math.ceil(maxQueued),
      quota !== undefined,
      quota?.jobs ?? null,
      quota?.audioMinutes === undefined ? null : quota.audioMinutes * 60,
      quota?.bytes ?? null,
    ]
    let rows = await call(values, (work) => work((text, given) => preparedStatement(pool, text, given)))
    // The server's default is another isolation level.
    if (rows[0]?.[0] === 'isolated')
      rows = await call(values, (work) => transaction(pool, (client) => work(sender(client))))
    return outcomes(jobs, limits, rows)
  }
}

function outcomes(
  jobs: readonly JobRecord[],
  { maxQueued = Infinity, quota }: Limits,
  rows: readonly Row[],
): AddedJob[] {
  const [found] = rows
  if (found?.[0] === 'found') return [{ job: parseRecord(found[1], found[2]), created: false }]
  const made = new Map(rows.flatMap(([outcome, record, , id]) => (outcome === 'created' ? [[id, record]] : [])))
  const [room, queueRoom, ...usage] = rows.at(-1)?.slice(4) ?? []
  return jobs.map((job, index) => {
    const id = columnText(job.id)
    const record = made.get(id)
    // Only once, in case a batch holds an id twice.
    made.delete(id)
    if (record !== undefined) return { job: parseRecord(record, null), created: true }
    if (index < Number(room)) return alreadyExists(job.id)
    if (!quota || (queueRoom !== null && index >= Number(queueRoom))) return queueFull(maxQueued)
    const { used, now } = parseUsage(usage)
    const before = { jobs: Math.max(0, Number(room)) }
    return quotaExceeded(quota, addUsage(used, before), 1, now) ?? queueFull(maxQueued)
  })
}
