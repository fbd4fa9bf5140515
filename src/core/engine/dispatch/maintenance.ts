import type { Logger } from '../ports/logger.js'
import type { FileSweep } from './file-sweep.js'
import type { Sweep } from './sweep.js'

/** Sweeps to one sweep of all files, of which nothing is urgent. */
const fileSweepRounds = 20

export interface MaintainedParts {
  sweep: Sweep
  fileSweep: FileSweep
  /** Looks for jobs to run. */
  wake(): void
  sendWebhooks(): Promise<unknown>
  sweepIntervalMs: number
  logger: Logger
}

/** What a started engine does from time to time: sweeps, looks for jobs, sends webhooks. Its timers do not keep the process alive. */
export class Maintenance {
  readonly #parts: MaintainedParts
  readonly #fileSweepMs: number
  #timers: NodeJS.Timeout[] = []
  #sweeping: Promise<unknown> | undefined
  #sweepingFiles: Promise<unknown> | undefined

  constructor(parts: MaintainedParts) {
    this.#parts = parts
    this.#fileSweepMs = fileSweepRounds * parts.sweepIntervalMs
  }

  get isStarted(): boolean {
    return this.#timers.length > 0
  }

  start(): void {
    this.#timers = [
      setInterval(() => this.#sweep(), this.#parts.sweepIntervalMs).unref(),
      setInterval(() => this.#sweepFiles(), this.#fileSweepMs).unref(),
    ]
    this.#sweep()
    this.#sweepFiles()
  }

  /** Begins nothing any more. */
  stop(): void {
    for (const timer of this.#timers) clearInterval(timer)
    this.#parts.fileSweep.stop()
  }

  /** Resolves when what is under way has ended. */
  async finished(): Promise<void> {
    await Promise.all([this.#sweeping, this.#sweepingFiles])
  }

  sendWebhooksSoon(): void {
    this.#parts
      .sendWebhooks()
      .catch((error: unknown) =>
        this.#parts.logger.warn({ err: error }, 'Webhook messages could not be read; they stay due.'),
      )
  }

  #sweep(): void {
    this.#parts.wake()
    this.#sweeping ??= this.#parts.sweep.run().finally(() => (this.#sweeping = undefined))
    this.sendWebhooksSoon()
  }

  /** Apart from the sweep, which is not to wait for it: many files take minutes. */
  #sweepFiles(): void {
    // Shorter than the timer's time, which may be early.
    const everyMs = this.#fileSweepMs / 2
    this.#sweepingFiles ??= this.#parts.fileSweep.run({ everyMs }).finally(() => (this.#sweepingFiles = undefined))
  }
}
