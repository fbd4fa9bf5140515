import { setMaxListeners } from 'node:events'
import type { Maintenance } from '../dispatch/maintenance.js'
import { type EngineHealth, engineHealth, type ExaminedParts } from './engine-health.js'
import { shuttingDown, StemworkError } from '../errors.js'
import type { JobEvents } from '../events.js'
import type { Waking } from '../dispatch/waking.js'
import type { Outbox } from '../webhooks/outbox.js'
import type { Logger } from '../ports/logger.js'
import { within } from '../ports/within.js'
import { longestTimerMs } from '../workflow/policy.js'
import type { JobRecord } from '../job/job.js'

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
    // Each handler and each wait adds a listener, so Node's warning about more than ten would be wrong.
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
    this.#closing ??= this.#close(Math.min(timeoutMs, longestTimerMs))
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
    if (this.closing.aborted) await workers.stop()
    else maintenance.start()
  }

  #close(timeoutMs: number): Promise<void> {
    const { dispatcher, maintenance, outbox, waking, workers, queue, runner, options, logger } = this.#parts
    // The dispatcher ends running attempts; this ends the waits between attempts.
    this.#closingSignal.abort(shuttingDown())
    this.#forgetReminder()
    maintenance.stop()
    waking.close()
    // An interrupted attempt sends no more heartbeats: after one lease, another worker may own its job.
    const dispatchMs = Math.min(timeoutMs + options.dispatch.leaseMs, longestTimerMs)
    let left: Promise<boolean> | undefined
    const unlessSilent = async (work: Promise<unknown>) => {
      if (await (left ??= workers.stop())) await work
      else await within(work, 0, () => new Error('The job store does not answer.'))
    }
    const stopDispatcher = async () => {
      const stopped = dispatcher.stop(timeoutMs)
      await within(stopped, timeoutMs, () => new Error('late')).catch(() => {})
      await unlessSilent(stopped)
    }
    return closeParts(
      [
        [{ name: 'dispatcher', close: stopDispatcher, timeoutMs: dispatchMs }],
        [
          { name: 'sweep', close: () => unlessSilent(maintenance.finished()) },
          { name: 'webhooks', close: () => unlessSilent(outbox.close()) },
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

interface ClosingPart {
  /** Name for operators. */
  name: string
  close(): Promise<unknown>
  /** Longest time that closing may take, in milliseconds. Default: 10,000. */
  timeoutMs?: number
}

const defaultTimeoutMs = 10_000

/**
 * Closes the groups one after another, and the parts of a group concurrently. Closes every part, even if another fails
 * or takes too long.
 *
 * @throws StemworkError `CLOSE_FAILED` naming the parts that are not closed, with their errors in an `AggregateError`
 * as cause.
 */
async function closeParts(groups: readonly (readonly ClosingPart[])[], logger: Logger): Promise<void> {
  const failures: { name: string; error: unknown }[] = []
  const close = async ({ name, close, timeoutMs = defaultTimeoutMs }: ClosingPart) => {
    try {
      await within(close(), timeoutMs, () => new Error(`The ${name} did not close within ${timeoutMs} ms.`))
    } catch (error) {
      failures.push({ name, error })
      logger.error(
        { part: name, err: error },
        'A part of the engine could not be closed; the others are closed all the same.',
      )
    }
  }
  for (const group of groups) await Promise.all(group.map(close))
  if (failures.length === 0) return
  const names = failures.map(({ name }) => name)
  throw new StemworkError(
    'CLOSE_FAILED',
    `The engine was closed, but these parts failed to close: ${names.join(', ')}. Their connections or child ` +
      'processes may keep the process alive. Check the causes, and end the process if it does not exit.',
    { cause: new AggregateError(failures.map(({ error }) => error)), details: { parts: names } },
  )
}

/** Long enough for a host that submits before it starts the engine. */
const patienceMs = 30_000

/**
 * Warns once if the first submitted job still waits after 30 s although only this process could run it. Call the
 * returned function when the engine starts or closes: it cancels the warning.
 */
function remindToStart({ events, jobs, logger }: LifecycleParts): () => void {
  if (jobs.traits.scope !== 'process') return () => {}
  let timer: NodeJS.Timeout | undefined
  const onCreated = ({ job }: { job: JobRecord }) => {
    events.off('job.created', onCreated)
    timer = setTimeout(() => void look(job.id), patienceMs).unref()
  }
  const look = async (id: string) => {
    // Other checks report a store that does not respond.
    const job = await jobs.get(id).catch(() => undefined)
    if (job?.status !== 'QUEUED') return
    logger.warn(
      { jobId: id },
      'A job is waiting, but this process does not run jobs and no other process can reach its store. Call ' +
        'engine.start(), or engine.run(id) for each job.',
    )
  }
  events.on('job.created', onCreated)
  return () => {
    events.off('job.created', onCreated)
    clearTimeout(timer)
  }
}
