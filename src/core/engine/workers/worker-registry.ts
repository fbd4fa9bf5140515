import { randomBytes } from 'node:crypto'
import type { JobRecord } from '../job/job.js'
import { labelsOf } from '../job/pool.js'
import type { SharedParts } from '../engine-parts.js'
import { within } from '../ports/within.js'
import { remembered } from '../limits/remembered.js'
import {
  meanSeconds,
  type PoolStatus,
  serves,
  type Worker,
  workerKind,
  workerSchema,
  type WorkerState,
} from './worker.js'

/**
 * Spreads out the periodic work of workers: each does it once in this time multiplied by the number of workers. So a
 * thousand idle workers put no more load on the store than a hundred.
 */
export const roundMsPerWorker = 120
/** Missed beats before a worker counts as dead. */
const beatsToLive = 3
const mostWorkers = 20_000
const perPage = 1000
/** Cached, because health checks, metrics and waiting clients read it often. */
const rememberedMs = 2_000
/** Cached, because each job needs it to choose the workers to wake; a stale list costs a tenth of a second. */
const knownMs = 15_000
/** Equals the default time for which a child process keeps its models (`child.idleMs`). */
const warmMs = 600_000
/** How long an operator's order is kept if the worker has died. */
const orderMs = 600_000
const orderTries = 5
/** A store that takes longer to remove an entry counts as unavailable. */
const removalMs = 1_500
/** Number of jobs in the moving average. */
const rememberedJobs = 50

export interface RegistryParts extends Pick<SharedParts, 'jobs' | 'logger'> {
  /** Facts that this process reports about itself as a worker. */
  self(): Pick<Worker, 'owner' | 'workflows' | 'labels' | 'slots'>
  running(): number
  /** Called when an operator has changed whether this worker takes jobs. */
  onState(state: WorkerState): void
  beatMs: number
}

/** The live workers: each renews its document, which expires otherwise. */
export class WorkerRegistry {
  readonly #parts: RegistryParts
  readonly #key: string
  /** The address by which the queue's notifications can name this worker. */
  readonly address = randomBytes(6).toString('hex')
  readonly #durations = new Map<string, { jobs: number; seconds: number }>()
  readonly #startedAt = Date.now()
  /** When a job of each workflow last succeeded here. */
  readonly #lastRuns = new Map<string, number>()
  #state: WorkerState = 'open'
  /** Version of this worker's document, once written. */
  #version: number | undefined
  #timer: NodeJS.Timeout | undefined
  #beatMs: number
  #beating: Promise<void> = Promise.resolve()
  /** The workers, slightly delayed. */
  readonly recent = remembered(() => this.workers(), rememberedMs)
  /** The workers, up to 15 s old. */
  readonly known = remembered(() => this.workers(), knownMs)
  /** Waiting and running jobs, and the workers that can take them; slightly delayed. */
  readonly pools = remembered(() => this.#readPools(), rememberedMs)

  constructor(parts: RegistryParts) {
    this.#parts = parts
    this.#beatMs = parts.beatMs
    // The address distinguishes engines with the same name.
    this.#key = `${parts.self().owner.slice(0, 300)}#${this.address}`
  }

  async start(): Promise<void> {
    await this.#beat()
    this.#beatLater()
  }

  /** Sets the number of workers: the more there are, the less often each reports. */
  setFleet(workers: number): void {
    this.#beatMs = Math.max(this.#parts.beatMs, workers * roundMsPerWorker)
  }

  #beatLater(): void {
    this.#timer = setTimeout(() => {
      this.#beating = this.#beat()
      this.#beatLater()
    }, this.#beatMs).unref()
  }

  /** Removes this worker from the list. Returns whether the store answered; if not, the entry expires. */
  async stop(): Promise<boolean> {
    if (this.#timer === undefined) return true
    clearTimeout(this.#timer)
    const removing = this.#beating.then(() => this.#parts.jobs.documents.delete(workerKind, this.#key)).catch(() => {})
    return await within(removing, removalMs, () => new Error('late')).then(
      () => true,
      () => false,
    )
  }

  /** Records the duration of a job that succeeded here. */
  noteSuccess({ workflow, startedAt, completedAt }: JobRecord): void {
    if (startedAt === null || completedAt === null) return
    this.#lastRuns.set(workflow, performance.now())
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
    for await (const { value } of this.#documents()) {
      // Skips entries that a newer version wrote in another form.
      const worker = workerSchema.safeParse(value)
      if (worker.success) found.push(worker.data)
      if (found.length === mostWorkers) break
    }
    return found
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

  /**
   * Sets the state of all workers with this name.
   *
   * @returns how many were found @throws the store's error
   */
  async setState(owner: string, state: WorkerState): Promise<number> {
    const { documents } = this.#parts.jobs
    let found = 0
    for await (const { key } of this.#documents()) {
      for (let tries = 0; tries < orderTries; tries++) {
        // A heartbeat may change the document in between.
        const known = await documents.get(workerKind, key)
        const worker = workerSchema.safeParse(known?.value).data
        if (!known || worker?.owner !== owner) break
        const value: Worker = { ...worker, state }
        const options = { version: known.version }
        if ((await documents.put({ kind: workerKind, key, value, ttlMs: orderMs }, options)) === undefined) continue
        found++
        break
      }
    }
    return found
  }

  async *#documents() {
    const { documents } = this.#parts.jobs
    let after: string | undefined
    do {
      const page = await documents.list(workerKind, { limit: perPage, after })
      yield* page
      after = page.length === perPage ? page.at(-1)?.key : undefined
    } while (after !== undefined)
  }

  async #beat(): Promise<void> {
    const { jobs, self, running, logger } = this.#parts
    const now = performance.now()
    const write = (): Promise<number | undefined> => {
      const value: Worker = {
        ...self(),
        state: this.#state,
        warm: [...this.#lastRuns].filter(([, at]) => now - at < warmMs).map(([workflow]) => workflow),
        address: this.address,
        running: running(),
        startedAt: this.#startedAt,
        seenAt: Date.now(),
        durations: Object.fromEntries(this.#durations),
      }
      const document = { kind: workerKind, key: this.#key, value, ttlMs: beatsToLive * this.#beatMs }
      return jobs.documents.put(document, { version: this.#version })
    }
    try {
      this.#version = (await write()) ?? (await this.#obey().then(write))
    } catch (error) {
      logger.warn({ err: error }, 'This worker could not report to the job store that it is alive; it will try again.')
    }
  }

  /** Obeys an operator's order, after this worker's document was changed by another process or has expired. */
  async #obey(): Promise<void> {
    const found = await this.#parts.jobs.documents.get(workerKind, this.#key)
    this.#version = found?.version ?? 0
    const state = workerSchema.safeParse(found?.value).data?.state
    if (state === undefined || state === this.#state) return
    this.#state = state
    this.#parts.logger.info({ state }, 'An operator changed whether this worker takes jobs.')
    this.#parts.onState(state)
  }
}
