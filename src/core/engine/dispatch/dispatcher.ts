import { tmpdir } from 'node:os'
import { StemworkError } from '../errors.js'
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
  #subscription: QueueSubscription | undefined

  constructor(ports: AttemptPorts, owner: string) {
    this.#ports = ports
    this.#owner = owner
    this.#scratch = new Scratch(ports.options.scratchDirectory ?? tmpdir(), ports.logger)
  }

  get running(): number {
    return this.#running.size
  }

  async start(): Promise<void> {
    const { queue, options } = this.#ports
    await this.#scratch.removeLeftovers()
    this.#subscription ??= await queue.subscribe(async ({ id }) => void (await this.run(id)), {
      concurrency: options.dispatch.concurrency,
    })
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

  /** Takes no new job, waits for the running ones up to `timeoutMs`, then hands them back to the queue. */
  async stop(timeoutMs: number): Promise<void> {
    // Stopping the subscription waits for its handlers, which are the running attempts.
    const stopped = Promise.resolve(this.#subscription?.stop())
    const handBack = setTimeout(() => {
      for (const attempt of this.#running.values()) attempt.interrupt(shuttingDown())
    }, timeoutMs)
    await stopped.finally(() => clearTimeout(handBack))
    this.#subscription = undefined
    await this.#scratch.close()
  }
}

export function shuttingDown(): StemworkError {
  return new StemworkError(
    'SHUTTING_DOWN',
    'The service is shutting down; the job goes on elsewhere or after the restart.',
    { retryable: true },
  )
}
