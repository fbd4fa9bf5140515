import { randomBytes } from 'node:crypto'
import type { JobRecord } from '../job/job.js'
import { labelsOf } from '../job/pool.js'
import type { JobStore } from '../ports/job-store.js'
import type { Logger } from '../ports/logger.js'
import { remembered } from '../limits/remembered.js'
import { meanSeconds, type PoolStatus, serves, type Worker, workerKind, workerSchema } from './worker.js'

/**
 * What every worker does now and then, even when there is nothing to do, is done once in this time for each worker: a
 * thousand idle ones ask the store for the same few statements a second as a hundred.
 */
export const roundMsPerWorker = 120
/** Missed beats before a worker counts as dead. */
const beatsToLive = 3
const mostWorkers = 20_000
const perPage = 1000
/** Health checks, metrics and waiting clients ask often. */
const rememberedMs = 2_000
/** Whom to wake is asked with each job, and a wrong answer costs a tenth of a second. */
const knownMs = 15_000
/** Number of jobs in the moving average. */
const rememberedJobs = 50

export interface RegistryParts {
  jobs: JobStore
  /** What this process reports about itself as a worker. */
  self(): Pick<Worker, 'owner' | 'workflows' | 'labels' | 'slots'>
  running(): number
  beatMs: number
  logger: Logger
}

/** The live workers: each renews its own document, which expires otherwise. */
export class WorkerRegistry {
  readonly #parts: RegistryParts
  readonly #key: string
  /** By which the queue's notifications may name this worker. */
  readonly address = randomBytes(6).toString('hex')
  readonly #durations = new Map<string, { jobs: number; seconds: number }>()
  readonly #startedAt = Date.now()
  #timer: NodeJS.Timeout | undefined
  #beatMs: number
  #beating: Promise<void> = Promise.resolve()
  readonly #recent = remembered(() => this.workers(), rememberedMs)
  readonly #known = remembered(() => this.workers(), knownMs)
  readonly #pools = remembered(() => this.#readPools(), rememberedMs)

  constructor(parts: RegistryParts) {
    this.#parts = parts
    this.#beatMs = parts.beatMs
    // Two engines may have the same name.
    this.#key = `${parts.self().owner.slice(0, 300)}#${this.address}`
  }

  async start(): Promise<void> {
    await this.#beat()
    this.#beatLater()
  }

  /** Sets how many workers there are: the more, the less often each reports. */
  setFleet(workers: number): void {
    this.#beatMs = Math.max(this.#parts.beatMs, workers * roundMsPerWorker)
  }

  #beatLater(): void {
    this.#timer = setTimeout(() => {
      this.#beating = this.#beat()
      this.#beatLater()
    }, this.#beatMs).unref()
  }

  /** Removes this worker from the list. */
  async stop(): Promise<void> {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    await this.#beating
    await this.#parts.jobs.documents.delete(workerKind, this.#key).catch(() => {})
  }

  /** Records the duration of a job that succeeded here. */
  noteSuccess({ workflow, startedAt, completedAt }: JobRecord): void {
    if (startedAt === null || completedAt === null) return
    const known = this.#durations.get(workflow) ?? { jobs: 0, seconds: 0 }
    const kept = known.jobs < rememberedJobs ? 1 : (rememberedJobs - 1) / rememberedJobs
    const seconds = Math.max(0, completedAt - startedAt) / 1000
    this.#durations.set(workflow, {
      jobs: Math.min(rememberedJobs, known.jobs + 1),
      seconds: known.seconds * kept + seconds,
    })
  }

  async workers(): Promise<Worker[]> {
    const found: Worker[] = []
    let after: string | undefined
    do {
      const page = await this.#parts.jobs.documents.list(workerKind, { limit: perPage, after })
      // Ignores workers that a newer version wrote in another form.
      for (const { value } of page) {
        const worker = workerSchema.safeParse(value)
        if (worker.success) found.push(worker.data)
      }
      after = page.length === perPage ? page.at(-1)?.key : undefined
    } while (after !== undefined && found.length < mostWorkers)
    return found
  }

  /** Waiting and running jobs, and who can take them; slightly delayed. */
  pools(): Promise<PoolStatus[]> {
    return this.#pools()
  }

  /** The workers, slightly delayed. */
  recent(): Promise<Worker[]> {
    return this.#recent()
  }

  /** The workers as they were known lately. */
  known(): Promise<Worker[]> {
    return this.#known()
  }

  async #readPools(): Promise<PoolStatus[]> {
    const [backlog, workers] = await Promise.all([this.#parts.jobs.backlog(), this.workers()])
    return backlog.map(({ workflow, pool, queued, oldestMs, running }) => {
      const able = workers.filter((worker) => serves(worker, { workflow, pool }))
      const mean = meanSeconds(workers, workflow)
      return {
        workflow,
        needs: labelsOf(pool),
        queued,
        oldestMs,
        running,
        workers: able.length,
        slots: able.reduce((sum, { slots }) => sum + slots, 0),
        backlogSeconds: mean === undefined ? null : queued * mean,
      }
    })
  }

  async #beat(): Promise<void> {
    const { jobs, self, running, logger } = this.#parts
    const value: Worker = {
      ...self(),
      address: this.address,
      running: running(),
      startedAt: this.#startedAt,
      seenAt: Date.now(),
      durations: Object.fromEntries(this.#durations),
    }
    try {
      await jobs.documents.put({ kind: workerKind, key: this.#key, value, ttlMs: beatsToLive * this.#beatMs })
    } catch (error) {
      logger.warn({ err: error }, 'This worker could not report to the job store that it is alive; it will try again.')
    }
  }
}
