import { StemworkError } from '../../../core/engine/errors.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { alreadyExists } from '../../../core/engine/job/queue-limit.js'
import type { CreateAllOptions } from '../../../core/engine/ports/job-store.js'
import { batched } from '../shared/batched.js'
import type { ConnectionShares } from './connection-shares.js'
import { type PostgresClient, type PostgresPool, query, type Send, statement, transaction } from './database.js'
import { CreateLimits, type Limits } from './create-limits.js'
import type { CreatedJob, JobInserts } from './job-inserts.js'
import { documentWrites } from './postgres-documents.js'

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
export function limitedCreates(
  pool: PostgresPool,
  schema: string,
  { inserts, connections }: { inserts: JobInserts; connections: ConnectionShares },
) {
  const transactionOf = <Result>(app: string, work: (client: PostgresClient) => Promise<Result>) =>
    connections.use(app, () => transaction(pool, work))
  const limits = new CreateLimits(schema)
  const write = documentWrites(schema)
  const lanes = new Map<string, { create: (job: LimitedJob) => Promise<LimitedOutcome>; waiting: number }>()

  async function createBatch(jobs: LimitedJob[]): Promise<LimitedOutcome[]> {
    const [first] = jobs
    if (!first) return []
    const { app } = first.job
    return await transactionOf(app, async (client) => {
      await limits.lock(client, app)
      let queued = await limits.queuedJobs(client, app, Math.max(...jobs.map(({ maxQueued }) => maxQueued)))
      const fitting = jobs.map(({ maxQueued }) => {
        const fits = queued < maxQueued
        if (fits) queued++
        return fits
      })
      const chosen = jobs.filter((_, index) => fitting[index]).map(({ job }) => job)
      const created = chosen.length > 0 ? await inserts.insertFree(sender(client), app, chosen) : []
      return fitting.map((fits): LimitedOutcome => (fits ? (created.shift() ?? 'taken') : 'full'))
    })
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
    async createCounted(job: JobRecord, given: Limits): Promise<CreatedJob> {
      const { app } = job
      return await transactionOf(app, async (client) => {
        const outcome = await inserts.insertOrFind(client, job, () => limits.refusal(client, app, given))
        if (!outcome.created) return outcome
        await limits.lock(client, app)
        const refused = await limits.refusal(client, app, given, { own: 1 })
        if (refused) throw refused
        if (given.quota) await limits.usage.addJobs(sender(client), app, 1)
        return outcome
      })
    },

    /** All of them, or none. They are of one application and have no idempotency keys. */
    async createAll(
      app: string,
      jobs: readonly JobRecord[],
      { document, ...given }: CreateAllOptions,
    ): Promise<JobRecord[] | undefined> {
      return await transactionOf(app, async (client) => {
        await limits.lock(client, app)
        const refused = await limits.refusal(client, app, given, { more: jobs.length })
        if (refused) throw refused
        const isWritten = !document || (await write(sender(client), document, document.version)) !== undefined
        if (!isWritten) return undefined
        const created = await inserts.insertFree(sender(client), app, jobs)
        if (given.quota) await limits.usage.addJobs(sender(client), app, jobs.length)
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
      given: Limits,
      work: (send: Send, refused: StemworkError | undefined) => Promise<JobRecord | undefined>,
    ): Promise<JobRecord | undefined> {
      return transactionOf(app, async (client) => {
        await limits.lock(client, app)
        const changed = await work(sender(client), await limits.refusal(client, app, given))
        if (changed && given.quota) await limits.usage.addJobs(sender(client), app, 1)
        return changed
      })
    },

    /**
     * In the host's transaction, which may last: without the lock. The quota counts it at once, so that nobody waits
     * for the host.
     */
    async createIn(client: PostgresClient, job: JobRecord, given: Limits): Promise<CreatedJob> {
      const outcome = await inserts.insertOrFind(client, job, () => limits.refusal(client, job.app, given))
      if (outcome.created && given.quota)
        await limits.usage.addJobs((text, values) => statement(pool, text, values), job.app, 1)
      return outcome
    },
  }
}

function sender(client: PostgresClient): Send {
  return (text, values) => query(client, text, values)
}
