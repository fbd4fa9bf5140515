import type { JobRecord } from '../job/job.js'
import type { JobQueue } from '../ports/job-queue.js'
import type { JobStore } from '../ports/job-store.js'
import type { Logger } from '../ports/logger.js'
import { serves, type Worker } from '../workers/worker.js'
import type { WorkerRegistry } from '../workers/worker-registry.js'

/** Workers that are notified first of a job. The second is for the case that the first has died or become busy. */
const fewPerJob = 2
/** How long these workers have to claim a job. A claim takes a hundredth of this. */
const firstChoiceMs = 100
/** Most jobs to check afterwards; of more jobs, some surely still wait. */
const mostLookedAt = 20

export interface WakingParts {
  jobs: Pick<JobStore, 'get'>
  queue: JobQueue
  workers: Pick<WorkerRegistry, 'known'>
  logger: Logger
}

export type WaitingJob = Pick<JobRecord, 'id' | 'workflow' | 'pool'>

/**
 * Notifies workers of waiting jobs. Where a notification would reach all workers, a few are notified first, and the
 * others only if a job still waits afterwards: a lone job costs a few claims, however many workers are idle. Workers
 * that ran its workflow lately come first, because their models are loaded.
 */
export class Waking {
  readonly #parts: WakingParts
  readonly #timers = new Set<NodeJS.Timeout>()
  /** Jobs of which only a few workers have been notified. */
  readonly #notifiedJobs = new Set<string>()
  #isClosed = false
  /** Whether the last notification failed, which is logged once. */
  #isUnheard = false

  constructor(parts: WakingParts) {
    this.#parts = parts
  }

  /** @param waiting the jobs that may wait; absent: unknown */
  async wake(waiting?: readonly WaitingJob[], { delayMs = 0 } = {}): Promise<void> {
    const few = waiting && (await this.#few(waiting))
    await this.#notify({ delayMs, workers: few })
    if (few && waiting) this.#after(delayMs, () => this.#lookSoon(waiting))
  }

  close(): void {
    this.#isClosed = true
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
  }

  /** Addresses of the workers to notify first; `undefined`: all, if they are not many more. */
  async #few(waiting: readonly WaitingJob[]): Promise<string[] | undefined> {
    const { queue, workers } = this.#parts
    if (queue.traits.wakes !== 'all') return undefined
    const known = await workers.known().catch((): Worker[] => [])
    const chosen = new Set<string>()
    for (const job of waiting) {
      const able = known.filter((worker) => serves(worker, job) && worker.running < worker.slots)
      const warm = able.filter((worker) => worker.warm.includes(job.workflow))
      for (const { address } of firstOf(warm.length > 0 ? warm : able, fewPerJob))
        if (address !== undefined) chosen.add(address)
    }
    // Workers that have no address, or are not known yet, can only be notified together with all others.
    return chosen.size > 0 && known.length > 2 * chosen.size ? [...chosen] : undefined
  }

  #lookSoon(waiting: readonly WaitingJob[]): void {
    if (this.#notifiedJobs.size === 0) this.#after(firstChoiceMs, () => void this.#look())
    for (const { id } of waiting) this.#notifiedJobs.add(id)
  }

  async #look(): Promise<void> {
    const ids = [...this.#notifiedJobs]
    this.#notifiedJobs.clear()
    if (ids.length > mostLookedAt || (await this.#oneWaits(ids))) await this.#notify({})
  }

  async #oneWaits(ids: readonly string[]): Promise<boolean> {
    for (const id of ids) {
      const job = await this.#parts.jobs.get(id).catch(() => undefined)
      if (job?.status === 'QUEUED') return true
    }
    return false
  }

  async #notify(to: { delayMs?: number; workers?: string[] }): Promise<void> {
    if (this.#isClosed) return
    try {
      await this.#parts.queue.notify(to)
      this.#isUnheard = false
    } catch (error) {
      if (!this.#isUnheard)
        this.#parts.logger.warn({ err: error }, 'No worker could be notified; sweeps find the work until one can.')
      this.#isUnheard = true
    }
  }

  #after(delayMs: number, then: () => void): void {
    if (this.#isClosed) return
    if (delayMs <= 0) return then()
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      then()
    }, delayMs).unref()
    this.#timers.add(timer)
  }
}

/** Chooses workers at random, so that simultaneous jobs choose different ones. */
function firstOf(workers: readonly Worker[], count: number): Worker[] {
  const left = [...workers]
  const chosen: Worker[] = []
  while (chosen.length < count && left.length > 0)
    chosen.push(...left.splice(Math.floor(Math.random() * left.length), 1))
  return chosen
}
