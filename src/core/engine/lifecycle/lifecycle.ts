import { setMaxListeners } from 'node:events'
import { closeParts } from './close-parts.js'
import type { Maintenance } from '../dispatch/maintenance.js'
import { type EngineHealth, engineHealth, type ExaminedParts } from './engine-health.js'
import { shuttingDown, StemworkError } from '../errors.js'
import type { JobEvents } from '../events.js'
import { remindToStart } from './not-started.js'
import type { Waking } from '../dispatch/waking.js'
import type { Outbox } from '../webhooks/outbox.js'

interface LifecycleParts extends ExaminedParts {
  maintenance: Maintenance
  outbox: Outbox
  waking: Waking
  events: JobEvents
}

/** Starts and closes the parts of an engine in order, and checks their health. */
export class Lifecycle {
  readonly #parts: LifecycleParts
  readonly #closingSignal = new AbortController()
  readonly #forgetReminder: () => void
  #starting: Promise<void> | undefined
  #closing: Promise<void> | undefined

  constructor(parts: LifecycleParts) {
    this.#parts = parts
    // Each handler and each wait listens; a warning about more than ten would be wrong.
    setMaxListeners(Infinity, this.closing)
    this.#forgetReminder = remindToStart(parts)
  }

  /** Aborted with `SHUTTING_DOWN` as soon as the engine closes. */
  get closing(): AbortSignal {
    return this.#closingSignal.signal
  }

  /** See `JobEngine.start`. */
  async start(): Promise<void> {
    this.#refuseClosed()
    this.#forgetReminder()
    this.#starting ??= this.#start().catch((error: unknown) => {
      this.#starting = undefined
      throw error
    })
    await this.#starting
  }

  /** See `JobEngine.ready`. */
  ready(): Promise<void> {
    return this.#parts.readiness.check({ again: true })
  }

  /** See `JobEngine.close`. */
  close(timeoutMs: number): Promise<void> {
    this.#closing ??= this.#close(timeoutMs)
    return this.#closing
  }

  /** See `JobEngine.health`. */
  health(): Promise<EngineHealth> {
    const runsJobs = this.#starting !== undefined || this.#parts.jobs.traits.scope === 'process'
    return engineHealth(this.#parts, { runsJobs, isClosing: this.closing.aborted })
  }

  async #start(): Promise<void> {
    const { dispatcher, workers, maintenance } = this.#parts
    await this.ready()
    this.#refuseClosed()
    await dispatcher.start()
    this.#refuseClosed()
    await workers.start()
    if (this.closing.aborted) return await workers.stop()
    maintenance.start()
  }

  #close(timeoutMs: number): Promise<void> {
    const { dispatcher, maintenance, outbox, waking, workers, queue, runner, options, logger } = this.#parts
    // The dispatcher ends running attempts; this ends the waits between attempts.
    this.#closingSignal.abort(shuttingDown())
    this.#forgetReminder()
    maintenance.stop()
    waking.close()
    // An interrupted attempt sends no more heartbeats: after one lease, another worker may own its job.
    const dispatchMs = timeoutMs + options.dispatch.leaseMs
    return closeParts(
      [
        [{ name: 'dispatcher', close: () => dispatcher.stop(timeoutMs), timeoutMs: dispatchMs }],
        [
          { name: 'sweep', close: () => maintenance.finished() },
          { name: 'webhooks', close: () => outbox.close() },
          { name: 'workers', close: () => workers.stop() },
        ],
        [
          { name: 'queue', close: () => queue.close() },
          { name: 'runner', close: () => runner.close() },
        ],
      ],
      logger,
    )
  }

  #refuseClosed(): void {
    if (this.closing.aborted)
      throw new StemworkError('SHUTTING_DOWN', 'The engine was closed and cannot be started again. Create a new one.')
  }
}
