import { AsyncLocalStorage } from 'node:async_hooks'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { StemworkError } from '../errors.js'
import { isTransient, jobError } from '../job/failure.js'
import { maxStepFiles, maxSteps, stepNameSchema } from '../job/step.js'
import { labelSchema } from '../job/pool.js'
import type { InputFile, KeptStep, RunSteps, StepResult, StepState, WorkResult } from '../ports/runner.js'
import { removeFolder } from './run-folder.js'
import { asKept, MadeFile, withFiles, wrongSteps } from './step-files.js'
import { longestTimerMs } from '../workflow/policy.js'
import type { Kept, StepContext, StepOptions, Steps, Work } from '../workflow/steps.js'
import { untilAborted } from '../workflow/until-aborted.js'

const defaultShare = 0.1
const defaultRetryDelayMs = 1_000
/** Effectively forever, yet far enough below the latest time that a date can represent. */
const longestWaitMs = 1e15

/** Dependencies that the steps of a run share. */
interface StepPorts extends Omit<StepContext, 'file' | 'progress'> {
  /** Version of steps without their own. */
  version: string
  kept: readonly StepState[]
  /** Absent in runs without an engine: nothing is kept. */
  host?: RunSteps
  clock?: StepClock
  /** Labels that this worker offers to steps. Absent: any. */
  offers?: readonly string[]
  /** @param name of the step that runs */
  report(name: string, progress: number): void
}

/** Clock and timer for steps that wait or retry. */
export interface StepClock {
  now(): number
  wait(ms: number, signal: AbortSignal): Promise<unknown>
}

/** The step whose work is running, and its run, because another job may run within a step. */
const inside = new AsyncLocalStorage<{ run: StepRun; name: string }>()

const realClock: StepClock = { now: () => Date.now(), wait: (ms, signal) => delay(ms, undefined, { signal }) }

/** Why a run is suspended: the steps that wait, or the labels that the next step needs of a worker. */
export type Suspension = Required<Pick<WorkResult, 'waitsFor'>> & Pick<WorkResult, 'needs'>

/** Retries, limits and needs of a step. */
export interface StepPolicy {
  maxAttempts: number
  isRetried(error: unknown): boolean
  /** Milliseconds to wait after this number of tries. */
  delayMs(tries: number): number
  timeoutMs?: number
  share?: number
  needs?: readonly string[]
  /** Results of another version of the step are ignored. */
  version?: string
  onRetry?(error: unknown, tries: number, delayMs: number): void
}

/** One run of a workflow's function, which reuses the steps that earlier runs have finished. */
export class StepRun implements Steps {
  readonly #ports: StepPorts
  readonly #clock: StepClock
  readonly #kept: ReadonlyMap<string, StepState>
  readonly #used = new Set<string>()
  readonly #waits = new Set<string>()
  /** The steps and waits that have not succeeded. */
  readonly #open = new Map<string, Promise<unknown>>()
  #isOver = false
  /** Labels that the first step that cannot run here needs. */
  #needs: readonly string[] | undefined
  #running = 0
  #files = 0
  #progress = 0
  #suspend: (suspension: Suspension) => void = () => {}
  /** Resolves with the reason to suspend the run, once no step of it is running. */
  readonly suspended = new Promise<Suspension>((resolve) => (this.#suspend = resolve))

  constructor(ports: StepPorts) {
    this.#ports = ports
    this.#clock = ports.clock ?? realClock
    this.#kept = new Map(ports.kept.map((step) => [step.name, step]))
    ports.signal.addEventListener('abort', () => this.end(), { once: true })
  }

  /**
   * Call when the function has ended. A step that the function began and did not await may fail later, or when the job
   * is stopped: as an unhandled rejection, that failure would end the host's process.
   */
  end(): void {
    this.#isOver = true
    for (const step of this.#open.values()) step.catch(() => {})
  }

  #follow<Result>(name: string, step: Promise<Result>): Promise<Result> {
    if (!this.#open.has(name)) this.#open.set(name, step)
    if (this.#isOver) this.end()
    return step
  }

  run<Value>(name: string, work: Work<Value>, options: StepOptions = {}): Promise<Kept<Value>> {
    const { maxAttempts = 1, retryDelayMs = defaultRetryDelayMs, timeoutMs, share, needs, ...others } = options
    // Refused, because the author of the workflow would believe that a misspelt option is in force.
    for (const other of Object.keys(others))
      throw wrongSteps(
        `The step "${name}" has the option "${other}". Expected maxAttempts, retryDelayMs, timeoutMs, share or needs.`,
      )
    const delayMs = (tries: number) => Math.min(retryDelayMs * 2 ** (tries - 1), longestTimerMs)
    // Whoever sets both a time limit and several tries wants a timeout to be retried.
    const isRetried = (error: unknown) => isTransient(error) || jobError(error).code === 'TIMEOUT'
    return this.do(name, work, { maxAttempts, delayMs, isRetried, timeoutMs, share, needs })
  }

  /** Does the same as `run` with any policy. */
  do<Value>(name: string, work: Work<Value>, policy: StepPolicy): Promise<Kept<Value>> {
    return this.#follow(name, this.#do(name, work, policy))
  }

  async #do<Value>(name: string, work: Work<Value>, policy: StepPolicy): Promise<Kept<Value>> {
    this.#use(name)
    const done = await this.#busy(async () => {
      const { version = this.#ports.version, share = defaultShare } = policy
      const kept = this.#own(name, version)
      const finished = kept?.state === 'done' ? await this.#ports.host?.finished(name) : undefined
      if (!finished && !this.#isOffered(name, policy.needs)) return undefined
      const { value, files } = finished ?? (await this.#tried(name, work, { ...policy, version }, kept?.attempts ?? 0))
      this.#files += Object.keys(files).length
      if (this.#files > maxStepFiles)
        throw wrongSteps(`The steps of the job made more than ${maxStepFiles} files. Put several into one.`)
      this.#progress += share
      if (!finished) this.#ports.report(name, this.#progress)
      this.#open.delete(name)
      return { value: withFiles(value, files) as Kept<Value> }
    })
    return done ? done.value : await new Promise<never>(() => {})
  }

  async all<Values extends Record<string, unknown>>(
    works: { [Name in keyof Values]: Work<Values[Name]> },
    options: StepOptions = {},
  ): Promise<{ [Name in keyof Values]: Kept<Values[Name]> }> {
    const runs = Object.entries(works).map(async ([name, work]) => [name, await this.run(name, work, options)] as const)
    // All steps end before the first failure is thrown, so that the results of the successful ones are kept.
    const settled = await Promise.allSettled(runs)
    const failed = settled.find((run) => run.status === 'rejected')
    if (failed) throw failed.reason
    return Object.fromEntries(await Promise.all(runs)) as { [Name in keyof Values]: Kept<Values[Name]> }
  }

  sleep(name: string, milliseconds: number): Promise<void> {
    return this.#follow(name, this.#wait(name, milliseconds)) as Promise<void>
  }

  waitFor<Value>(name: string, { timeoutMs }: { timeoutMs: number }): Promise<Value | undefined> {
    return this.#follow(name, this.#wait(name, timeoutMs)) as Promise<Value | undefined>
  }

  /** @throws StemworkError `INTERNAL_ERROR` if earlier runs finished steps that this run did not reach. */
  requireAllUsed(): void {
    // An event does not count as a step: it may arrive early, and no step need ever wait for it.
    const { kept, version } = this.#ports
    const names = kept
      .map(({ name }) => name)
      .filter((name) => !this.#used.has(name) && this.#own(name, version)?.state === 'done')
    if (names.length === 0) return
    throw wrongSteps(
      `Earlier attempts of the job finished the steps ${names.join(', ')}, which this one did not reach. Give the ` +
        'workflow another `version` when its steps change.',
    )
  }

  /** State of the step after earlier attempts. `undefined`: none, another version of it, or only an event so named. */
  #own(name: string, version: string): StepState | undefined {
    const kept = this.#kept.get(name)
    return kept?.version === version && kept.attempts > 0 ? kept : undefined
  }

  /** Whether the step may run on this worker; otherwise the run continues on another worker. */
  #isOffered(name: string, needs: readonly string[] = []): boolean {
    const { offers } = this.#ports
    const wrong = needs.find((label) => !labelSchema.safeParse(label).success)
    if (wrong !== undefined)
      throw wrongSteps(`The step "${name}" needs ${JSON.stringify(wrong)}. Expected a label such as "gpu".`)
    if (offers === undefined || needs.every((label) => offers.includes(label))) return true
    this.#needs ??= needs
    return false
  }

  #use(name: string): void {
    if (!stepNameSchema.safeParse(name).success)
      throw wrongSteps(
        `A step has the name ${JSON.stringify(name)}. Expected a letter, and then letters, digits, "-" and "_", at ` +
          'most 100.',
      )
    const outer = inside.getStore()
    if (outer?.run === this)
      // A wait there would never end, and a later attempt would skip the outer step and never reach this one.
      throw wrongSteps(`The step "${name}" begins inside the step "${outer.name}". Begin it after that step.`)
    if (this.#used.has(name)) throw wrongSteps(`Two steps have the name "${name}". Give each its own.`)
    if (this.#used.size === maxSteps) throw wrongSteps(`The job has more than ${maxSteps} steps. Do more in each.`)
    this.#used.add(name)
  }

  async #busy<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#running++
    try {
      return await work()
    } finally {
      this.#running--
      this.#suspendIfIdle()
    }
  }

  /** Deferred, because a step that has just ended may let the function begin another. */
  #suspendIfIdle(): void {
    setImmediate(() =>
      setImmediate(() => {
        if (this.#running > 0) return
        if (this.#needs) this.#suspend({ waitsFor: [], needs: [...this.#needs] })
        else if (this.#waits.size > 0) this.#suspend({ waitsFor: [...this.#waits] })
      }),
    )
  }

  async #wait(name: string, milliseconds: number): Promise<unknown> {
    this.#use(name)
    if (typeof milliseconds !== 'number' || Number.isNaN(milliseconds))
      throw wrongSteps(`The step "${name}" waits for ${milliseconds}. Expected a number of milliseconds.`)
    const ended = await this.#busy(async () => {
      const { version, host } = this.#ports
      const known = this.#kept.get(name)
      // An event that arrived before this wait has no version.
      const kept = known && ['', version].includes(known.version) ? known : undefined
      if (kept?.state === 'done') return await host?.finished(name)
      const now = this.#clock.now()
      const startedAt = kept?.startedAt ?? now
      const until = kept?.until ?? startedAt + Math.min(milliseconds, longestWaitMs)
      const step = { name, version, startedAt, until, attempts: 1, files: {}, error: null }
      if (now < until) {
        await this.#save({ ...step, state: 'waiting', endedAt: null, value: null })
        this.#waits.add(name)
        return undefined
      }
      await this.#save({ ...step, state: 'done', endedAt: now, value: {} })
      return { value: {} }
    })
    if (!ended) return await new Promise<never>(() => {})
    return isEvent(ended.value) ? ended.value.event : undefined
  }

  async #save(step: KeptStep): Promise<Record<string, InputFile>> {
    return (await this.#ports.host?.save(step)) ?? step.files
  }

  async #tried(
    name: string,
    work: Work<unknown>,
    { version, maxAttempts, isRetried, delayMs, onRetry, ...policy }: StepPolicy & { version: string },
    earlier: number,
  ): Promise<StepResult> {
    for (let tries = 1; ; tries++) {
      const startedAt = this.#clock.now()
      const step = { name, version, startedAt, attempts: earlier + tries, until: null }
      try {
        const { value, files } = await this.#once(name, work, policy)
        const saved = await this.#save({
          ...step,
          state: 'done',
          endedAt: this.#clock.now(),
          value,
          files,
          error: null,
        })
        return { value, files: saved }
      } catch (error) {
        const { signal } = this.#ports
        signal.throwIfAborted()
        if (StemworkError.is(error) && error.code === 'LEASE_LOST') throw error
        const { code, message } = jobError(error)
        const failed = { ...step, endedAt: this.#clock.now(), value: null, files: {}, error: { code, message } }
        await this.#save({ ...failed, state: 'failed' })
        if (tries >= maxAttempts || !isRetried(error)) throw error
        const waitMs = delayMs(tries)
        onRetry?.(error, tries, waitMs)
        await this.#clock.wait(waitMs, signal)
      }
    }
  }

  /** Makes one try, in an empty folder for the step. */
  async #once(
    name: string,
    work: Work<unknown>,
    { timeoutMs, share = defaultShare }: Pick<StepPolicy, 'timeoutMs' | 'share'>,
  ): Promise<StepResult> {
    const { jobId, limits, trace, detail, directory: parent, signal, report } = this.#ports
    const directory = join(parent, `step-${name}`)
    await removeFolder(directory)
    await mkdir(directory, { recursive: true })
    const limit = new AbortController()
    const timer =
      timeoutMs === undefined || timeoutMs > longestTimerMs
        ? undefined
        : setTimeout(() => limit.abort(tookTooLong(name, timeoutMs)), timeoutMs)
    const ending = AbortSignal.any([signal, limit.signal])
    let isOver = false
    const context: StepContext = {
      jobId,
      limits,
      trace,
      detail,
      directory,
      signal: ending,
      progress: (fraction) => {
        // A step may leave work running that reports after the next step has begun.
        if (!isOver) report(name, this.#progress + share * Math.min(1, Math.max(0, fraction)))
      },
      file: (fileName) => new MadeFile(directory, fileName),
    }
    report(name, this.#progress)
    try {
      return await asKept(
        name,
        await untilAborted(
          inside.run({ run: this, name }, () => work(context)),
          ending,
        ),
      )
    } catch (error) {
      ending.throwIfAborted()
      throw error
    } finally {
      isOver = true
      clearTimeout(timer)
    }
  }
}

function isEvent(value: unknown): value is { event: unknown } {
  return typeof value === 'object' && value !== null && 'event' in value
}

function tookTooLong(name: string, timeoutMs: number): StemworkError {
  const message = `The step "${name}" took longer than its limit of ${timeoutMs / 1000} seconds. Send a shorter file.`
  return new StemworkError('TIMEOUT', message)
}
