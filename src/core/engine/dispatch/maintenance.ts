import type { Batches } from '../batch/batches.js'
import { clockProblem } from '../store-clock.js'
import type { Outbox } from '../webhooks/outbox.js'
import type { Dispatcher } from './dispatcher.js'
import type { FileSweep } from './sweep/file-sweep.js'
import { mostPerSweep, type Sweep, type SweepReport } from './sweep/sweep.js'
import type { sweepTurn } from './sweep/sweep-turn.js'
import { roundMsPerWorker, type WorkerRegistry } from '../workers/worker-registry.js'
import { longestTimerMs } from '../workflow/policy.js'
import type { SharedParts } from '../engine-parts.js'

/** Intervals of the sweep per sweep of all files, which is not urgent. */
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

export type Maintenance = ReturnType<typeof engineMaintenance>

/**
 * The periodic work of a started engine: sweeps, checks for jobs, sends webhooks. Its timers do not keep the process
 * alive.
 */
export function engineMaintenance(parts: MaintainedParts) {
  const { sweep, takeSweepTurn, workers, fileSweep, dispatcher, outbox, batches, clock, options, logger } = parts
  const { sweepIntervalMs } = options.dispatch
  const fileSweepMs = Math.min(fileSweepRounds * sweepIntervalMs, longestTimerMs)
  let timer: NodeJS.Timeout | undefined
  let filesTimer: NodeJS.Timeout | undefined
  let isStarted = false
  let fleet = 1
  let knownProblem: string | undefined
  let looking: Promise<void> | undefined
  let sweeping: Promise<unknown> | undefined
  /** Whether this node sent messages the last time. */
  let hasSent = false
  let sweepingFiles: Promise<unknown> | undefined
  return {
    get isStarted() {
      return isStarted
    },
    start,
    stop,
    finished,
    sweepNow,
    sendWebhooks,
    sendWebhooksSoon,
  }

  function start(): void {
    isStarted = true
    // A node that starts always sweeps, so that the cleanup after a crashed process does not wait for a turn.
    dispatcher.wake()
    beginSweep()
    beginFileSweep()
    lookLater()
    filesTimer = setInterval(beginFileSweep, fileSweepMs).unref()
  }

  /** Starts no more work. */
  function stop(): void {
    isStarted = false
    clearTimeout(timer)
    clearInterval(filesTimer)
    fileSweep.stop()
  }

  /** Resolves when the current work has ended. */
  async function finished(): Promise<void> {
    await Promise.all([looking, sweeping, sweepingFiles])
  }

  /** See `JobEngine.sweep`. */
  async function sweepNow({
    files,
    allowMassRemoval,
  }: {
    files: boolean
    allowMassRemoval: boolean
  }): Promise<SweepReport> {
    if (await isClockWrong()) return { deleted: 0, expired: 0, missed: 0, purged: 0, uploads: 0, orphans: 0 }
    const swept = await sweep.run()
    const sweptFiles = files ? await fileSweep.run({ allowMassRemoval }) : { uploads: 0, orphans: 0 }
    return { ...swept, ...sweptFiles }
  }

  /** See `JobEngine.sendWebhooks`. */
  async function sendWebhooks(): Promise<number> {
    const [ofJobs, ofBatches] = await Promise.all([outbox.send(), batches.tend()])
    return ofJobs + ofBatches
  }

  function sendWebhooksSoon(): void {
    sendWebhooks().then(
      (sent) => void (hasSent = sent > 0),
      (error: unknown) => logger.warn({ err: error }, 'Webhook messages could not be read; they stay due.'),
    )
  }

  /** Schedules the next check; the more workers there are, the less often each checks. */
  function lookLater(): void {
    const everyMs = Math.max(sweepIntervalMs, fleet * roundMsPerWorker)
    timer = setTimeout(() => {
      look()
      lookLater()
    }, everyMs).unref()
  }

  function look(): void {
    dispatcher.wake()
    looking ??= sweepInTurn()
      .catch((error: unknown) =>
        logger.warn(
          { err: error },
          'The job store could not be asked which worker sweeps; the next check tries again. If this continues, ' +
            'look at the store.',
        ),
      )
      .finally(() => (looking = undefined))
  }

  async function sweepInTurn(): Promise<void> {
    if (await isClockWrong()) return sendWebhooksSoon()
    const turn = await takeSweepTurn()
    fleet = turn.workers
    workers.setFleet(turn.workers)
    if (turn.isOurs && isStarted) beginSweep()
    // All nodes that have sent messages continue to send: a single node could take long.
    else if (hasSent) sendWebhooksSoon()
  }

  function beginSweep(): void {
    sweeping ??= unlessClockIsWrong(sweepAll).finally(() => (sweeping = undefined))
    sendWebhooksSoon()
  }

  async function sweepAll(): Promise<void> {
    for (let most = mostPerSweep; most >= mostPerSweep && isStarted;) {
      const { deleted, expired, purged } = await sweep.run()
      most = Math.max(deleted, expired, purged)
    }
  }

  /** Separate from the sweep, which must not wait: many files take minutes. */
  function beginFileSweep(): void {
    // Less than the timer's interval, because the timer may be early.
    const everyMs = fileSweepMs / 2
    sweepingFiles ??= unlessClockIsWrong(() => fileSweep.run({ everyMs })).finally(() => (sweepingFiles = undefined))
  }

  /** Sweeps do not depend on this node's clock, but a node with a wrong clock may have other faults. */
  async function unlessClockIsWrong(work: () => Promise<unknown>): Promise<void> {
    if (!(await isClockWrong())) await work()
  }

  async function isClockWrong(): Promise<boolean> {
    // If the store does not answer, the sweep fails and reports it.
    const problem = await clockProblem(clock).catch(() => undefined)
    if (problem !== undefined && knownProblem === undefined) logger.error({}, problem)
    knownProblem = problem
    return problem !== undefined
  }
}
