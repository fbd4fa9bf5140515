import { tmpdir } from 'node:os'
import { shuttingDown, type StemworkError } from '../errors.js'
import type { JobRecord } from '../job/job.js'
import type { QueueSubscription } from '../ports/job-queue.js'
import { Attempt, type AttemptPorts } from './attempt.js'
import { Scratch } from './scratch.js'

/**
 * Turns references from the queue into claimed runs. The reference is a hint; the lease that the store grants is the right to
 * run, so a reference that comes twice, late, or for a job that is gone does nothing.
 */
export class Dispatcher {
  readonly #ports: AttemptPorts
  readonly #owner: string
  readonly #scratch: Scratch
  readonly #running = new Map<string, Attempt>()
  #subscription: Promise<QueueSubscription> | undefined

  constructor(ports: AttemptPorts, owner: string) {
    this.#ports = ports
    this.#owner = owner
    this.#scratch = new Scratch(ports.options.scratchDirectory ?? tmpdir(), ports.logger)
  }

  get running(): number {
    return this.#running.size
  }

  /** May be called again after it failed. */
  async start(): Promise<void> {
    this.#subscription ??= this.#subscribe()
    try {
      await this.#subscription
    } catch (error) {
      this.#subscription = undefined
      throw error
    }
  }

  /**
   * Claims the named job, or the one that has waited longest, and runs it to its end. `undefined`: there was nothing to claim,
   * or the run lost its lease.
   */
  async run(id?: string): Promise<JobRecord | undefined> {
    const { jobs, options, logger } = this.#ports
    const job = await jobs.claim({ id, owner: this.#owner, leaseMs: options.dispatch.leaseMs })
    if (!job) return undefined
    const attempt = new Attempt(job, this.#ports, this.#scratch)
    this.#running.set(job.id, attempt)
    try {
      return await attempt.run()
    } catch (error) {
      logger.error(
        { jobId: job.id, error },
        'The end of a run could not be recorded; its lease will run out and the job is run again.',
      )
      return undefined
    } finally {
      if (this.#running.get(job.id) === attempt) this.#running.delete(job.id)
    }
  }

  /** Ends the run of a job in this process, if there is one. */
  interrupt(jobId: string, reason: StemworkError): void {
    this.#running.get(jobId)?.interrupt(reason)
  }

  /** Takes no new job, waits for the running ones up to `timeoutMs`, then gives them back to the queue. */
  async stop(timeoutMs: number): Promise<void> {
    const interruptAll = () => {
      for (const attempt of this.#running.values()) attempt.interrupt(shuttingDown())
    }
    const timer = setTimeout(interruptAll, timeoutMs)
    try {
      // A start that failed has reported it to its own caller.
      const subscription = await this.#subscription?.catch(() => undefined)
      // Waits for the handlers, which are the running attempts.
      await subscription?.stop()
      this.#subscription = undefined
    } catch (error) {
      interruptAll()
      throw error
    } finally {
      clearTimeout(timer)
    }
    await this.#scratch.close()
  }

  async #subscribe(): Promise<QueueSubscription> {
    const { queue, options } = this.#ports
    await this.#scratch.removeLeftovers()
    return await queue.subscribe(async ({ id }) => void (await this.run(id)), {
      concurrency: options.dispatch.concurrency,
    })
  }
}
