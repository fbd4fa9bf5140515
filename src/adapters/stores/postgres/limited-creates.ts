import { StemworkError } from '../../../core/engine/errors.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { alreadyExists, queueFull } from '../../../core/engine/job/queue-limit.js'
import type { CreateOptions } from '../../../core/engine/ports/job-store.js'
import { batched } from '../shared/batched.js'
import { type PostgresClient, type PostgresPool, query, type Row, statement, transaction } from './database.js'
import type { CreatedJob, JobInserts } from './job-inserts.js'
import { columnText } from './job-row.js'
import { usageTable } from './usage.js'

type Limits = Omit<CreateOptions, 'tx'>
type Send = (text: string, values: unknown[]) => Promise<Row[]>

/**
 * Any number that no other user of the database's advisory locks takes; with the hash it is one lock per application.
 */
const lockClass = 0x57e4
/** A process that stops during a create holds up the others of its application for so long, then loses the lock. */
const maxIdleMs = 5_000

export interface LimitedJob {
  job: JobRecord
  maxQueued: number
}

/** The job that was created, or why it was not. */
export type LimitedOutcome = JobRecord | 'taken' | 'full'

/**
 * Jobs that are created under one lock at most, and only those of one application at a time: a second batch would wait
 * for the lock.
 */
const batch = {
  maxItems: 200,
  parallel: 1,
  isItemsFault: (error: unknown) => StemworkError.is(error) && !error.retryable,
}

/**
 * Creates of jobs whose application may have a limited number of queued ones. Who has counted holds the application's
 * lock until its jobs are committed, so nobody else counts in between; other applications have other locks, and other
 * batches.
 */
export function limitedCreates(pool: PostgresPool, schema: string, inserts: JobInserts) {
  const usage = usageTable(schema)
  const lanes = new Map<string, { create: (job: LimitedJob) => Promise<LimitedOutcome>; waiting: number }>()

  async function createBatch(jobs: LimitedJob[]): Promise<LimitedOutcome[]> {
    const [first] = jobs
    if (!first) return []
    const { app } = first.job
    return await transaction(pool, async (client) => {
      await lock(client, app)
      let queued = await queuedJobs(client, app, Math.max(...jobs.map(({ maxQueued }) => maxQueued)))
      const fitting = jobs.map(({ maxQueued }) => {
        const fits = queued < maxQueued
        if (fits) queued++
        return fits
      })
      const chosen = jobs.filter((_, index) => fitting[index]).map(({ job }) => job)
      const run = (text: string, values: unknown[]) => query(client, text, values)
      const created = chosen.length > 0 ? await inserts.insertFree(run, app, chosen) : []
      return fitting.map((fits): LimitedOutcome => (fits ? (created.shift() ?? 'taken') : 'full'))
    })
  }

  /** In a separate statement: the count that comes after it sees what was committed before its own statement began. */
  async function lock(client: PostgresClient, app: string): Promise<void> {
    await query(
      client,
      `SELECT set_config('idle_in_transaction_session_timeout', $1, true), pg_advisory_xact_lock($2::int, ` +
        'hashtext($3))',
      [String(maxIdleMs), lockClass, `${schema} ${columnText(app)}`],
    )
  }

  /** Looks at no more jobs than the limit needs. */
  async function queuedJobs(client: PostgresClient, app: string, limit: number): Promise<number> {
    const [row] = await query(
      client,
      `SELECT count(*) FROM (SELECT FROM ${schema}.jobs WHERE app = $1 AND status = 'QUEUED' AND NOT deleted LIMIT ` +
        '$2) AS queued',
      [columnText(app), Math.ceil(limit)],
    )
    return Number(row?.[0])
  }

  return {
    /** For a job without an idempotency key. */
    async create(limited: LimitedJob): Promise<LimitedOutcome> {
      const { app } = limited.job
      const lane = lanes.get(app) ?? { create: batched(createBatch, batch), waiting: 0 }
      lanes.set(app, lane)
      lane.waiting++
      try {
        return await lane.create(limited)
      } finally {
        if (--lane.waiting === 0) lanes.delete(app)
      }
    },

    /**
     * For a job with an idempotency key or under a quota. The job is added before the lock is taken and counted with
     * the rest: adding may have to wait for a host's transaction that holds the same key, and the application's other
     * creates should not.
     */
    async createCounted(job: JobRecord, limits: Limits): Promise<CreatedJob> {
      const { app } = job
      return await transaction(pool, async (client) => {
        const outcome = await inserts.insertOrFind(client, job, () => refusal(client, app, limits))
        if (!outcome.created) return outcome
        await lock(client, app)
        const refused = await refusal(client, app, limits, { own: 1 })
        if (refused) throw refused
        if (limits.quota) await usage.addJobs(sender(client), app, 1)
        return outcome
      })
    },

    /** All of them, or none. They are of one application and have no idempotency keys. */
    async createAll(app: string, jobs: readonly JobRecord[], limits: Limits): Promise<JobRecord[]> {
      return await transaction(pool, async (client) => {
        await lock(client, app)
        const refused = await refusal(client, app, limits, { more: jobs.length })
        if (refused) throw refused
        const created = await inserts.insertFree(sender(client), app, jobs)
        if (limits.quota) await usage.addJobs(sender(client), app, jobs.length)
        return created.map((job, index) => {
          if (job) return job
          throw alreadyExists(jobs[index]?.id ?? '')
        })
      })
    },

    /**
     * Runs work that adds a queued job, unless there is no room for it: nobody else counts those of the application
     * meanwhile.
     */
    underLock(
      app: string,
      limits: Limits,
      work: (send: Send, refused: StemworkError | undefined) => Promise<JobRecord | undefined>,
    ): Promise<JobRecord | undefined> {
      return transaction(pool, async (client) => {
        await lock(client, app)
        const changed = await work(sender(client), await refusal(client, app, limits))
        if (changed && limits.quota) await usage.addJobs(sender(client), app, 1)
        return changed
      })
    },

    /**
     * In the host's transaction, which may last: without the lock. The quota counts it at once, so that nobody waits
     * for the host.
     */
    async createIn(client: PostgresClient, job: JobRecord, limits: Limits): Promise<CreatedJob> {
      const outcome = await inserts.insertOrFind(client, job, () => refusal(client, job.app, limits))
      if (outcome.created && limits.quota)
        await usage.addJobs((text, values) => statement(pool, text, values), job.app, 1)
      return outcome
    },
  }

  /**
   * @param counts.own queued jobs that this transaction has added; there must be room for them and the others that it
   * is about to add.
   */
  async function refusal(
    client: PostgresClient,
    app: string,
    { maxQueued = Infinity, quota }: Limits,
    { own = 0, more = 1 }: { own?: number; more?: number } = {},
  ): Promise<StemworkError | undefined> {
    if (maxQueued !== Infinity && (await queuedJobs(client, app, maxQueued + own)) - own + more > Math.ceil(maxQueued))
      return queueFull(maxQueued)
    return await usage.refusal(sender(client), app, quota, more)
  }
}

function sender(client: PostgresClient): Send {
  return (text, values) => query(client, text, values)
}
