import { StemworkError } from '../../../core/engine/errors.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { alreadyExists } from '../../../core/engine/job/queue-limit.js'
import type { Shares } from '../../../core/engine/limits/shares.js'
import type { CreateAllOptions } from '../../../core/engine/ports/job-store.js'
import { batched } from '../shared/batched.js'
import { type PostgresClient, type PostgresPool, sender, type Send, statement, transaction } from './database.js'
import { type AddedJob, addedJobs } from './add-jobs.js'
import { createLimits, type Limits } from './create-limits.js'
import type { CreatedJob, JobInserts } from './job-inserts.js'
import { documentWrites } from './postgres-documents.js'

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
  const limits = createLimits(schema)
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

    /** All of them, or none. They are of one application and have no idempotency keys. */
    async createAll(
      app: string,
      jobs: readonly JobRecord[],
      { document, ...given }: CreateAllOptions,
    ): Promise<JobRecord[] | undefined> {
      return await transactionOf(app, async (client) => {
        await limits.lock(client, app)
        // First: a repeated request finds the document that the first one wrote, and needs no room.
        const isWritten = !document || (await write(sender(client), document, document.version)) !== undefined
        if (!isWritten) return undefined
        const refused = await limits.refusal(client, app, given, jobs.length)
        if (refused) throw refused
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

function createdOr(added: AddedJob): CreatedJob {
  if (added instanceof StemworkError) throw added
  return added
}
