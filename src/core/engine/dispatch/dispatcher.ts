import { tmpdir } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { shuttingDown, type StemworkError } from '../errors.js'
import type { JobRecord } from '../job/job.js'
import type { QueueSubscription } from '../ports/job-queue.js'
import type { Claimable } from '../ports/job-store.js'
import type { WorkerState } from '../workers/worker.js'
import type { Attempt } from './attempt/attempt.js'
import type { AttemptPorts } from './attempt/attempt-ports.js'
import { type ApplicationShares, applicationShares } from './application-shares.js'
import { JobClaims } from './job-claims.js'
import { preemption } from './preemption.js'
import { Scratch } from './attempt/scratch.js'
import { Stages } from './attempt/stages.js'

/**
 * Keeps up to `concurrency` jobs running, and some more whose inputs arrive slowly. One claim at a time asks the store
 * for as many jobs as there is room for, until it has no more; the end of each job makes room. So a notification or a
 * tick of the sweep is only needed after a claim found too few jobs.
 */
export class Dispatcher {
  readonly #ports: AttemptPorts
  readonly #scratch: Scratch
  #Attempt: typeof Attempt | undefined
  readonly #running = new Map<string, Attempt>()
  readonly #claims: JobClaims
  readonly #lanes = new Set<Promise<void>>()
  readonly #stages: Stages
  /** The loop that claims jobs while there is room; there is one at a time. */
  #filling: Promise<void> | undefined
  /** Whether the last claim found as many jobs as there was room for. */
  #mayBeMore = true
  readonly #shares: ApplicationShares
  readonly #preemption: ReturnType<typeof preemption>
  #subscription: Promise<QueueSubscription> | undefined
  #stopping = false
  /** Whether the grace period for running jobs has ended. */
  #isTimeUp = false
  /** Counts calls of `wake`: a claim that found too few jobs is repeated if there was a call meanwhile. */
  #wakes = 0
  /** Whether a notification was received and not yet passed on. */
  #notified = false
  #laneEnded: () => void = () => {}
  #state: WorkerState = 'open'
  /** While draining: ends the grace period of running jobs. */
  #draining: NodeJS.Timeout | undefined
  #lookingAgain: NodeJS.Timeout | undefined

  constructor(ports: AttemptPorts, owner: string) {
    this.#ports = ports
    this.#claims = new JobClaims({ ...ports, owner, running: this.#running })
    const { dispatch, inputs, limits } = ports.options
    this.#shares = applicationShares(limits.applications)
    this.#stages = new Stages(
      {
        concurrency: dispatch.concurrency,
        slowInputs: inputs.slowInputs,
        slowInputsPerApplication: inputs.slowInputsPerApplication,
      },
      () => this.#makeRoom(),
      () => this.wake(),
    )
    this.#scratch = new Scratch(ports.options.scratchDirectory ?? tmpdir(), ports.logger)
    this.#preemption = preemption<Attempt>({
      jobs: ports.jobs,
      logger: ports.logger,
      preemptAfterMs: dispatch.preemptAfterMs,
      shares: this.#shares,
      holders: () => (this.#busy === dispatch.concurrency ? [...this.#running.values()] : []),
      replace: (holder, claimable) => this.#replace(holder, claimable),
    })
  }

  get running(): number {
    return this.#running.size
  }

  /** May be called again after a failure. */
  async start(): Promise<void> {
    // All code that jobs and webhooks need: Node.js never loads a file again that it once failed to load, for example
    // because the process had no file descriptors left, or the package was being updated. One by one: Jest fails if two
    // imports that share a file begin together.
    await this.#scratch.check()
    await this.#loadAttempt()
    await import('../fetch/guarded-fetch.js')
    this.#subscription = this.#subscribe()
    await this.#subscription
    this.#preemption.start()
  }

  /** Applies an operator's order for this worker. */
  setState(state: WorkerState): void {
    this.#state = state
    clearTimeout(this.#draining)
    if (state === 'draining') {
      const handOver = () => {
        for (const attempt of this.#running.values()) attempt.interrupt(shuttingDown())
      }
      this.#draining = setTimeout(handOver, this.#ports.options.dispatch.graceMs).unref()
    }
    this.#laneEnded()
    this.wake()
  }

  /** Claims jobs, if there is room. */
  wake(): void {
    this.#wakes++
    this.#fill()
  }

  /**
   * Claims the given job, or the next in turn, and makes one attempt. `undefined`: no job to claim, or the lease was
   * lost. The signal hands the job back to the queue without counting the attempt.
   */
  async run(id?: string, signal?: AbortSignal): Promise<JobRecord | undefined> {
    const Work = await this.#loadAttempt()
    const job = id === undefined ? await this.#claimNextSteadily(signal) : await this.#claims.named(id)
    if (!job) return undefined
    const handBack = () => this.interrupt(job.id, shuttingDown())
    const attempt = this.#attempt(Work, job)
    if (signal?.aborted) handBack()
    signal?.addEventListener('abort', handBack, { once: true })
    try {
      return await attempt
    } finally {
      signal?.removeEventListener('abort', handBack)
    }
  }

  isRunning(jobId: string): boolean {
    return this.#running.has(jobId)
  }

  /** Folder of the job's attempt in this process; it may not exist. */
  scratchOf({ id, token }: Pick<JobRecord, 'id' | 'token'>): Promise<string | undefined> {
    return this.#scratch.pathOf(`${id}-${token}`)
  }

  /** Warning to the operator about the disk with the files of running jobs; `undefined`: none. */
  diskWarning(): Promise<string | undefined> {
    return this.#scratch.warning()
  }

  /** Ends the run of a job in this process, if there is one. */
  interrupt(jobId: string, reason: StemworkError): void {
    this.#running.get(jobId)?.interrupt(reason)
  }

  /** Takes no new job, waits up to `timeoutMs` for running jobs, then requeues them. */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#draining)
    this.#laneEnded()
    const timer = setTimeout(() => this.#interruptAll(), timeoutMs)
    try {
      // A failed start has already reported this error to its caller.
      const subscription = await this.#subscription?.catch(() => undefined)
      await this.#preemption.stop()
      await Promise.all([subscription?.stop(), this.#filling])
      await Promise.all(this.#lanes)
    } catch (error) {
      this.#interruptAll()
      throw error
    } finally {
      clearTimeout(timer)
    }
    await this.#scratch.close()
  }

  /** Loads code that hosts without jobs do not need. Called before a claim, so that its job is known here at once. */
  async #loadAttempt(): Promise<typeof Attempt> {
    return (this.#Attempt ??= (await import('./attempt/attempt.js')).Attempt)
  }

  #interruptAll(): void {
    this.#isTimeUp = true
    for (const attempt of this.#running.values()) attempt.interrupt(shuttingDown())
  }

  async #subscribe(): Promise<QueueSubscription> {
    await this.#scratch.removeLeftovers()
    const { queue, address } = this.#ports
    return await queue.subscribe(() => this.#onNotification(), { address })
  }

  /** Returns when there is room for a job. Until then, the queue notifies other workers. */
  async #onNotification(): Promise<void> {
    if (this.#stopping || this.#isFull()) this.#notifyOther()
    else this.#notified = true
    this.wake()
    while (!this.#stopping && this.#isFull()) await new Promise<void>((resolve) => (this.#laneEnded = resolve))
  }

  /** Lanes whose jobs have a run slot or will soon need one. */
  get #busy(): number {
    return this.#lanes.size - this.#stages.withoutSlot
  }

  /** How many more jobs may run. */
  get #room(): number {
    return this.#ports.options.dispatch.concurrency - this.#busy
  }

  #isFull(): boolean {
    return this.#room <= 0 || !this.#isOpen()
  }

  /** Whether jobs may be claimed at all. While the disk is full, jobs are left to other workers. */
  #isOpen(): boolean {
    return this.#state === 'open' && this.#scratch.fullMs === 0
  }

  #addLane(attempt: Promise<unknown>): void {
    const goOn = () => {
      this.#laneEnded()
      this.#fill()
    }
    const lane = attempt.then(() => {
      this.#lanes.delete(lane)
      goOn()
      const { fullMs } = this.#scratch
      // Timers may be a millisecond early.
      if (fullMs > 0) setTimeout(goOn, fullMs + 1).unref()
    })
    this.#lanes.add(lane)
  }

  /** Claims a job for the slot of a running one, which keeps the slot until the claimed job has its inputs. */
  async #replace(holder: Attempt, claimable: Pick<Claimable, 'belowRunning' | 'onlyApps'>): Promise<boolean> {
    if (!this.#isOpen()) return false
    const Work = await this.#loadAttempt()
    const [job] = await this.#claimAmong(1, claimable)
    if (job) this.#addLane(this.#attempt(Work, job, this.#stages, () => holder.giveWay()))
    return job !== undefined
  }

  #makeRoom(): void {
    this.#laneEnded()
    // So a lone job does not cause a claim for each of its stages.
    if (this.#mayBeMore) this.#fill()
  }

  #fill(): void {
    this.#filling ??= this.#claimWhileRoom()
  }

  async #claimWhileRoom(): Promise<void> {
    try {
      const Work = await this.#loadAttempt()
      for (;;) {
        const room = this.#room
        if (this.#isFull()) return
        const wakes = this.#wakes
        const most = this.#claims.atOnce(room)
        const jobs = await this.#claimNext(most)
        this.#mayBeMore = jobs.length === most
        for (const job of jobs) this.#addLane(this.#attempt(Work, job, this.#stages))
        // There may be more than this worker has room for.
        if (this.#isFull() && this.#notified) this.#notifyOther()
        if (!this.#mayBeMore && wakes === this.#wakes) return void this.#lookAgainForLapsed()
      }
    } catch (error) {
      this.#ports.logger.warn(
        { err: error },
        'The job store could not be queried for a job; the next sweep tries again.',
      )
    } finally {
      // Reset at once: a notification after the last claim must start a new loop.
      this.#filling = undefined
    }
  }

  #notifyOther(): void {
    this.#notified = false
    // Where a notification wakes all, its sender checks whether a job still waits.
    if (this.#ports.queue.traits.wakes === 'all') return
    this.#ports.queue
      .notify()
      .catch((error: unknown) => this.#ports.logger.warn({ err: error }, 'No other worker could be notified.'))
  }

  #claimNext(max: number): Promise<JobRecord[]> {
    return this.#shares.claim(max, (claimable, most) => this.#claimAmong(most, claimable))
  }

  async #claimAmong(max: number, claimable: Pick<Claimable, 'belowRunning' | 'onlyApps'>): Promise<JobRecord[]> {
    if (this.#stopping) return []
    return await this.#claims.next(max, { exceptApps: this.#stages.slowApplications, ...claimable })
  }

  /** Like #claimNext, but waits while a lost worker's job may not be taken over yet: the host may not call again. */
  async #claimNextSteadily(signal?: AbortSignal): Promise<JobRecord | undefined> {
    for (;;) {
      const [job] = await this.#claimNext(1)
      if (job || this.#stopping || signal?.aborted || !(await this.#claims.hasUnjudged())) return job
      await wait(this.#lookAgainMs, undefined, { signal }).catch(() => {})
    }
  }

  async #lookAgainForLapsed(): Promise<void> {
    if (this.#lookingAgain || this.#stopping) return
    if (!(await this.#claims.hasUnjudged().catch(() => false))) return
    this.#lookingAgain = setTimeout(() => {
      this.#lookingAgain = undefined
      this.wake()
    }, this.#lookAgainMs).unref()
  }

  get #lookAgainMs(): number {
    return this.#ports.options.dispatch.leaseMs / 3
  }

  /**
   * @param stages absent: the host requested this run, which needs no slot
   * @param onNoSlot called when the inputs are ready and no slot is free
   */
  async #attempt(
    Work: typeof Attempt,
    job: JobRecord,
    stages?: Stages,
    onNoSlot?: () => void,
  ): Promise<JobRecord | undefined> {
    const attempt = new Work(job, this.#ports, this.#scratch, stages, onNoSlot)
    this.#running.set(job.id, attempt)
    // The claim was answered after the grace period.
    if (this.#isTimeUp) attempt.interrupt(shuttingDown())
    try {
      return await attempt.run()
    } catch (error) {
      this.#ports.logger.error(
        { jobId: job.id, err: error },
        'The end of a run could not be recorded; its lease will expire and the job will run again.',
      )
      return undefined
    } finally {
      if (this.#running.get(job.id) === attempt) this.#running.delete(job.id)
    }
  }
}
