import type { Batches } from '../batch/batches.js'
import { clockProblem } from '../store-clock.js'
import type { Outbox } from '../webhooks/outbox.js'
import type { Dispatcher } from './dispatcher.js'
import type { FileSweep } from './sweep/file-sweep.js'
import type { Sweep, SweepReport } from './sweep/sweep.js'
import type { sweepTurn } from './sweep/sweep-turn.js'
import { roundMsPerWorker, type WorkerRegistry } from '../workers/worker-registry.js'
import type { SharedParts } from '../engine-parts.js'

/** Sweeps per sweep of all files, which is not urgent. */
const fileSweepRounds = 20

interface MaintainedParts extends Pick<SharedParts, 'clock' | 'options' | 'logger'> {
  sweep: Sweep
  takeSweepTurn(): ReturnType<typeof sweepTurn>
  workers: Pick<WorkerRegistry, 'setFleet'>
  fileSweep: FileSweep
  dispatcher: Dispatcher
  outbox: Outbox
  batches: Batches
}

/**
 * The periodic work of a started engine: sweeps, checks for jobs, sends webhooks. Its timers do not keep the process
 * alive.
 */
export class Maintenance {
  readonly #parts: MaintainedParts
  readonly #fileSweepMs: number
  #timer: NodeJS.Timeout | undefined
  #filesTimer: NodeJS.Timeout | undefined
  #isStarted = false
  #fleet = 1
  #clockProblem: string | undefined
  #looking: Promise<void> | undefined
  #sweeping: Promise<unknown> | undefined
  /** Whether this node had messages to send when it last looked. */
  #hasSent = false
  #sweepingFiles: Promise<unknown> | undefined

  constructor(parts: MaintainedParts) {
    this.#parts = parts
    this.#fileSweepMs = fileSweepRounds * parts.options.dispatch.sweepIntervalMs
  }

  get isStarted(): boolean {
    return this.#isStarted
  }

  start(): void {
    this.#isStarted = true
    // A node that starts always sweeps: what a crashed process left should not wait for a turn.
    this.#parts.dispatcher.wake()
    this.#beginSweep()
    this.#sweepFiles()
    this.#lookLater()
    this.#filesTimer = setInterval(() => this.#sweepFiles(), this.#fileSweepMs).unref()
  }

  /** Starts nothing more. */
  stop(): void {
    this.#isStarted = false
    clearTimeout(this.#timer)
    clearInterval(this.#filesTimer)
    this.#parts.fileSweep.stop()
  }

  /** Resolves when the current work has ended. */
  async finished(): Promise<void> {
    await Promise.all([this.#looking, this.#sweeping, this.#sweepingFiles])
  }

  /** See `JobEngine.sweep`. */
  async sweepNow({ files, allowMassRemoval }: { files: boolean; allowMassRemoval: boolean }): Promise<SweepReport> {
    const { sweep, fileSweep } = this.#parts
    if (await this.#isClockWrong()) return { deleted: 0, expired: 0, missed: 0, purged: 0, uploads: 0, orphans: 0 }
    const swept = await sweep.run()
    const sweptFiles = files ? await fileSweep.run({ allowMassRemoval }) : { uploads: 0, orphans: 0 }
    return { ...swept, ...sweptFiles }
  }

  /** See `JobEngine.sendWebhooks`. */
  async sendWebhooks(): Promise<number> {
    const { outbox, batches } = this.#parts
    const [ofJobs, ofBatches] = await Promise.all([outbox.send(), batches.tend()])
    return ofJobs + ofBatches
  }

  sendWebhooksSoon(): void {
    this.sendWebhooks().then(
      (sent) => void (this.#hasSent = sent > 0),
      (error: unknown) => this.#parts.logger.warn({ err: error }, 'Webhook messages could not be read; they stay due.'),
    )
  }

  /** The more workers there are, the less often each looks. */
  #lookLater(): void {
    const everyMs = Math.max(this.#parts.options.dispatch.sweepIntervalMs, this.#fleet * roundMsPerWorker)
    this.#timer = setTimeout(() => {
      this.#look()
      this.#lookLater()
    }, everyMs).unref()
  }

  #look(): void {
    const { dispatcher, logger } = this.#parts
    dispatcher.wake()
    this.#looking ??= this.#sweepInTurn()
      .catch((error: unknown) => logger.warn({ err: error }, 'It is not known whose turn it is to sweep.'))
      .finally(() => (this.#looking = undefined))
  }

  async #sweepInTurn(): Promise<void> {
    const { takeSweepTurn, workers } = this.#parts
    if (await this.#isClockWrong()) return this.sendWebhooksSoon()
    const turn = await takeSweepTurn()
    this.#fleet = turn.workers
    workers.setFleet(turn.workers)
    if (turn.isOurs && this.#isStarted) this.#beginSweep()
    // Messages that wait are sent by all nodes that have sent some: one alone could take long.
    else if (this.#hasSent) this.sendWebhooksSoon()
  }

  #beginSweep(): void {
    this.#sweeping ??= this.#unlessClockIsWrong(() => this.#parts.sweep.run()).finally(
      () => (this.#sweeping = undefined),
    )
    this.sendWebhooksSoon()
  }

  /** Separate from the sweep, which must not wait: many files take minutes. */
  #sweepFiles(): void {
    // Less than the timer's interval, because the timer may be early.
    const everyMs = this.#fileSweepMs / 2
    this.#sweepingFiles ??= this.#unlessClockIsWrong(() => this.#parts.fileSweep.run({ everyMs })).finally(
      () => (this.#sweepingFiles = undefined),
    )
  }

  /** No sweep depends on this node's clock. But nobody knows what else is wrong with a node whose clock is. */
  async #unlessClockIsWrong(sweep: () => Promise<unknown>): Promise<void> {
    if (!(await this.#isClockWrong())) await sweep()
  }

  async #isClockWrong(): Promise<boolean> {
    const { clock, logger } = this.#parts
    // A store that does not answer lets the sweep fail, which says so.
    const problem = await clockProblem(clock).catch(() => undefined)
    if (problem !== undefined && this.#clockProblem === undefined) logger.error({}, problem)
    this.#clockProblem = problem
    return problem !== undefined
  }
}
