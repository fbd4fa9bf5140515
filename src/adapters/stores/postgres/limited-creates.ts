import type { StemworkError } from '../../../core/engine/errors.js'
import { queueFull } from '../../../core/engine/job/queue-limit.js'
import { type BatchOptions, batched } from '../shared/batched.js'
import { type PostgresClient, type PostgresPool, query, transaction } from './database.js'
import type { CreatedJob, JobInserts, NewJob } from './job-inserts.js'
import { columnText } from './job-row.js'

/** Any number that other users of the database's advisory locks do not take; with the hash it is one lock an application. */
const lockClass = 0x57e4
/** A process that stops in the middle of a create holds up the others of its application for so long, then loses the lock. */
const maxIdleMs = 5_000

export interface LimitedJob {
  added: NewJob
  maxQueued: number
}

/** When the job was created, or why it was not. */
export type LimitedOutcome = { createdAt: number } | 'taken' | 'full'

/**
 * Creates of jobs whose application may have a limited number of queued ones. Who has counted holds the application's lock until
 * its jobs are committed, so nobody else counts in between; other applications have other locks, and other batches.
 */
export function limitedCreates(
  pool: PostgresPool,
  schema: string,
  { inserts, batch, onWrite }: { inserts: JobInserts; batch: BatchOptions; onWrite: (app: string) => void },
) {
  const lanes = new Map<string, { create: (job: LimitedJob) => Promise<LimitedOutcome>; waiting: number }>()

  async function createBatch(jobs: LimitedJob[]): Promise<LimitedOutcome[]> {
    const [first] = jobs
    if (!first) return []
    const { app } = first.added.job
    const outcomes = await transaction(pool, async (client) => {
      await lock(client, app)
      let queued = await queuedJobs(client, app)
      const fitting = jobs.map(({ maxQueued }) => {
        const fits = queued < maxQueued
        if (fits) queued++
        return fits
      })
      const chosen = jobs.filter((_, index) => fitting[index]).map(({ added }) => added)
      const run = (text: string, values: unknown[]) => query(client, text, values)
      const created = chosen.length > 0 ? await inserts.insertFree(run, chosen) : []
      return fitting.map((fits): LimitedOutcome => {
        if (!fits) return 'full'
        const createdAt = created.shift()
        return createdAt === undefined ? 'taken' : { createdAt }
      })
    })
    onWrite(app)
    return outcomes
  }

  /** In a statement of its own: the count that comes after it sees what was committed before its own statement began. */
  async function lock(client: PostgresClient, app: string): Promise<void> {
    await query(
      client,
      `SELECT set_config('idle_in_transaction_session_timeout', $1, true), pg_advisory_xact_lock($2::int, hashtext($3))`,
      [String(maxIdleMs), lockClass, `${schema} ${columnText(app)}`],
    )
  }

  async function queuedJobs(client: PostgresClient, app: string): Promise<number> {
    const [total] = await query(
      client,
      `SELECT coalesce(sum(delta), 0) FROM ${schema}.job_counts WHERE app = $1 AND status = 'QUEUED'`,
      [columnText(app)],
    )
    return Number(total?.[0])
  }

  return {
    /** For a job without an idempotency key. */
    async create(job: LimitedJob): Promise<LimitedOutcome> {
      const { app } = job.added.job
      // One batch an application at a time: a second one would only wait for the lock, with a connection of the pool.
      const lane = lanes.get(app) ?? { create: batched(createBatch, { ...batch, parallel: 1 }), waiting: 0 }
      lanes.set(app, lane)
      lane.waiting++
      try {
        return await lane.create(job)
      } finally {
        if (--lane.waiting === 0) lanes.delete(app)
      }
    },

    /**
     * For a job with an idempotency key. The job is added before the lock is taken and counted with the rest: adding may have to
     * wait for a host's transaction that holds the same key, and the application's other creates should not.
     */
    async createKeyed({ added, maxQueued }: LimitedJob): Promise<CreatedJob> {
      const { app } = added.job
      return await transaction(pool, async (client) => {
        const outcome = await inserts.insertOrFind(client, added, () => refusal(client, app, maxQueued))
        if (!outcome.created) return outcome
        await lock(client, app)
        const refused = await refusal(client, app, maxQueued, 1)
        if (refused) throw refused
        return outcome
      })
    },

    /** In a transaction of the host's, which may last: without the lock. */
    createIn(client: PostgresClient, { added, maxQueued }: LimitedJob): Promise<CreatedJob> {
      return inserts.insertOrFind(client, added, () => refusal(client, added.job.app, maxQueued))
    },
  }

  /** @param own queued jobs that this transaction has added, for which there must be room. */
  async function refusal(
    client: PostgresClient,
    app: string,
    maxQueued: number,
    own = 0,
  ): Promise<StemworkError | undefined> {
    if (maxQueued === Infinity) return undefined
    return (await queuedJobs(client, app)) - own < maxQueued ? undefined : queueFull(maxQueued)
  }
}
