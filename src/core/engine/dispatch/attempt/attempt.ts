import { isSetupError, preempted, StemworkError } from '../../errors.js'
import { readableError } from '../../job/error-text.js'
import { missedDeadline, timedOut } from '../../job/failure.js'
import type { JobOutput, JobRecord } from '../../job/job.js'
import { offersTo } from '../../job/pool.js'
import { isWorthKeeping } from '../../job/retry.js'
import type { JobChange } from '../../job/transitions.js'
import { type Policy, policyOf, withSafeRetryOn } from './policy.js'
import type { InputFile, WorkResult } from '../../ports/runner.js'
import { longestTimerMs } from '../../workflow/policy.js'
import type { Workflow } from '../../workflow/workflow.js'
import { AttemptCheckpoint } from './attempt-checkpoint.js'
import { successOf, suspensionOf } from './attempt-end.js'
import { attemptLog, type AttemptLog } from './attempt-log.js'
import { AttemptSpans } from './attempt-spans.js'
import { type AttemptSteps, attemptSteps } from './attempt-steps.js'
import { ProcessorTime, usageOf } from './attempt-usage.js'
import { answerToFailure, crowdedOut, hindranceOf } from './attempt-failure.js'
import { fetchInputs, needsDownload, paramsOf } from './attempt-inputs.js'
import { publishOutputs } from './attempt-outputs.js'
import type { AttemptPorts } from './attempt-ports.js'
import { runWorkflow } from './attempt-run.js'
import { explainFullDisk, fullDisk } from './full-disk.js'
import { type HeartbeatLoop, heartbeatLoop } from './heartbeat.js'
import { RunSlot } from './run-slot.js'
import { runTimeLimit } from './run-time-limit.js'
import type { Scratch } from './scratch.js'
import { settlement } from './settlement.js'
import type { Stages } from './stages.js'
import { throughOutage } from './storage-outage.js'

/** Shares of the progress for fetching and publishing; the runner's progress fills the rest. */
const fetchShare = 0.05
const publishShare = 0.03

/**
 * One claimed run of a job, from the granted lease to the one write that settles it. Whatever happens in between,
 * either that write is accepted or another worker holds the job and this run leaves nothing behind.
 */
export class Attempt {
  readonly app: string
  readonly pool: string
  readonly slot: RunSlot
  /** Never spread into another object: V8 takes 3 µs and 1 kB for each property that is added to such a copy. */
  readonly #ports: AttemptPorts
  readonly #job: JobRecord
  readonly #controller = new AbortController()
  readonly #heartbeat: HeartbeatLoop
  readonly #scratch: Scratch
  readonly #stages: Stages | undefined
  readonly #onNoSlot: (() => void) | undefined
  readonly #policy: Policy
  readonly #timeLimit: ReturnType<typeof runTimeLimit>
  readonly #deadline: ReturnType<typeof runTimeLimit> | undefined
  readonly #checkpoint: AttemptCheckpoint
  readonly #settlement: ReturnType<typeof settlement>
  readonly #log: AttemptLog
  /** How far the store's clock is ahead of this node's, whose date may be wrong. */
  readonly #storeAheadMs: number
  readonly #processorTime = new ProcessorTime()
  #inputs: Record<string, InputFile> = {}
  /** Attempts without progress, including this one. Kept work is never repeated. */
  #attempts: number
  readonly #spans: AttemptSpans

  /**
   * @param job the record that `claim` returned
   * @param onNoSlot called when the inputs are ready and no run slot is free
   */
  constructor(job: JobRecord, ports: AttemptPorts, scratch: Scratch, stages?: Stages, onNoSlot?: () => void) {
    const { options, events, jobs, blobs, contact, logger, workflows } = ports
    this.#ports = ports
    this.#job = job
    this.app = job.app
    this.pool = job.pool
    this.#log = attemptLog(logger, job)
    this.#scratch = scratch
    this.#stages = stages
    this.#onNoSlot = onNoSlot
    this.slot = new RunSlot({ preemptAfterMs: stages ? options.dispatch.preemptAfterMs : null })
    this.#attempts = job.attempts
    this.#spans = new AttemptSpans(options.tracing, job)
    const [onStored, onStopped] = [() => this.#onKept(), () => this.slot.noteStopped()]
    this.#checkpoint = new AttemptCheckpoint(job, { blobs, options, logger, onStored, onStopped })
    this.#settlement = settlement(ports, {
      job,
      checkpoint: this.#checkpoint,
      stages,
      outageMs: () => this.#outageMs(),
      answeredAt: () => contact.answeredAt,
      log: this.#log,
    })
    this.#policy = withSafeRetryOn(policyOf(job.workflow, workflows.get(job.workflow)?.policy, options), this.#log)
    this.#timeLimit = runTimeLimit(this.#policy.timeoutMs, () => this.interrupt(timedOut(this.#policy.timeoutMs)))
    const { deadline, lease } = job
    const { leaseMs, progressIntervalMs, storageOutageMs } = options.dispatch
    const claimedAt = (lease?.until ?? 0) - leaseMs
    this.#storeAheadMs = claimedAt - Date.now()
    if (deadline !== null && deadline - claimedAt < longestTimerMs)
      this.#deadline = runTimeLimit(deadline - claimedAt, () => this.interrupt(missedDeadline(deadline)))
    this.#heartbeat = heartbeatLoop(jobs, job, {
      leaseMs,
      progressIntervalMs,
      storageOutageMs,
      contact,
      used: () => usageOf(job, this.#inputs, this.#processorTime.used).used,
      onProgress: (updated) => events.announce('job.progressed', { job: updated }),
      interrupt: (reason) => this.interrupt(reason),
      logger,
    })
  }

  /** Keeps the run's work and ends it, to be resumed later; does nothing if it may no longer be preempted. */
  giveWay(): void {
    if (!this.slot.giveWay()) return
    void this.#checkpoint.beforeHandBack(false).then(() => {
      if (this.slot.isHeld) this.#end(preempted())
    })
  }

  /** Ends the run at once for the given reason. At a shutdown, the run may keep its work first. */
  interrupt(reason: StemworkError): void {
    if (reason.code === 'SHUTTING_DOWN') return void this.#checkpoint.beforeHandBack(true).then(() => this.#end(reason))
    this.#end(reason)
  }

  #end(reason: StemworkError): void {
    this.#controller.abort(reason)
    this.#heartbeat.stop()
  }

  /** The settled record; `undefined` if the lease was lost. Throws only if the store stays unavailable. */
  run(): Promise<JobRecord | undefined> {
    return this.#spans.whole(() => this.#runToEnd())
  }

  async #runToEnd(): Promise<JobRecord | undefined> {
    const { events, options, workflows } = this.#ports
    events.announce('job.started', { job: this.#job })
    const hindrance = hindranceOf(this.#job, Date.now() + this.#storeAheadMs, options.dispatch.maxLapses)
    if (hindrance) return this.#settlement.settle(this.#failure(hindrance))

    this.#timeLimit.start()
    this.#deadline?.start()
    this.#heartbeat.start()
    /** Empty if the workflow reads and writes no files. */
    let directory = ''
    let published = false
    let end: JobChange | undefined
    try {
      const workflow = workflows.require(this.#job.workflow)
      const declared = workflow.outputs(paramsOf(workflow, this.#job))
      const usesDisk = workflow.inputs.length > 0 || Object.keys(declared).length > 0 || workflow.run !== undefined
      if (usesDisk) directory = await this.#scratch.folder(`${this.#job.id}-${this.#job.token}`)
      const inputs = await this.#spans.step('fetch', () =>
        this.#inFetchStage(workflow, async () => {
          await this.#readCheckpoint((signal) => this.#checkpoint.find(signal))
          return await this.#fetchInputs(workflow, directory)
        }),
      )
      const result = await this.#inSlot(() => this.#runStages(workflow, inputs, directory))
      if (result.waitsFor) {
        await this.#checkpoint.keepDownloads()
        end = suspensionOf(this.#job, workflow, { ...result, waitsFor: result.waitsFor, ...this.#processorTime.used })
      } else {
        published = Object.keys(result.outputs).length > 0
        const outputs = await this.#spans.step('publish', () => this.#publish(result))
        this.#controller.signal.throwIfAborted()
        end = successOf(this.#job, outputs, {
          details: result.details,
          usage: usageOf(this.#job, inputs, { ...result, ...this.#processorTime.used }),
          retentionMs: options.retention.resultsMs,
        })
      }
      await this.#checkpoint.end()
    } catch (error) {
      await this.#checkpoint.end()
      // The interrupted code may throw any error; the signal's reason is the real cause.
      const { signal } = this.#controller
      const cause: unknown = signal.aborted
        ? signal.reason
        : explainFullDisk(readableError(error), this.#scratch.directory)
      if (published) await this.#settlement.discardResults()
      end = this.#failure(cause)
      if (end?.kind === 'fail' && isWorthKeeping(end.error)) await this.#checkpoint.keepDownloads()
    }
    try {
      // The files must stay until here: while the store is unavailable, the success may or may not be recorded.
      return await this.#settlement.settle(end)
    } finally {
      this.#timeLimit.pause()
      this.#deadline?.pause()
      this.#heartbeat.stop()
      if (directory !== '') await this.#scratch.remove(directory)
    }
  }

  #inFetchStage<Result>(workflow: Workflow, work: () => Promise<Result>): Promise<Result> {
    if (!this.#stages) return work()
    const onCrowded = needsDownload(workflow, this.#job)
      ? () => this.interrupt(crowdedOut(this.#ports.options.fetch))
      : undefined
    return this.#stages.fetch({ app: this.#job.app, work, onCrowded })
  }

  #inSlot<Result>(work: () => Promise<Result>): Promise<Result> {
    const hold = () => this.slot.hold(work)
    return this.#stages ? this.#stages.run(this.#controller.signal, hold, this.#onNoSlot) : hold()
  }

  async #fetchInputs(workflow: Workflow, directory: string): Promise<Record<string, InputFile>> {
    if (workflow.inputs.length > 0) this.#heartbeat.report({ stage: 'fetch', progress: 0 })
    return (this.#inputs = await fetchInputs(workflow, directory, {
      blobs: this.#ports.blobs,
      options: this.#ports.options,
      job: this.#job,
      checkpoint: this.#checkpoint,
      signal: this.#controller.signal,
      haste: this.#stages?.haste,
      throughOutage: (work) => this.#throughOutage(work),
    }))
  }

  /** Reads kept work. If it is still unreadable after an outage, the work is repeated. */
  async #readCheckpoint<Found>(read: (signal: AbortSignal) => Promise<Found>): Promise<Found | undefined> {
    const { signal } = this.#controller
    try {
      return await this.#throughOutage(() => read(signal))
    } catch (error) {
      signal.throwIfAborted()
      this.#log.warn('The checkpoint of the job could not be read; the job starts from the beginning.', error)
      return undefined
    }
  }

  #onKept(): void {
    this.#attempts = 1
    this.slot.noteKept(this.#checkpoint.isResumed ? this.#ports.options.checkpoints.everyMs : undefined)
    this.#heartbeat.noteKept()
  }

  async #runStages(workflow: Workflow, inputs: Record<string, InputFile>, directory: string): Promise<WorkResult> {
    const share = 1 - fetchShare - publishShare
    // Without checkpoints, the steps of a composition are not worth keeping.
    const hasSteps = workflow.run !== undefined || (workflow.composition !== undefined && this.#checkpoint.isOn)
    const { options, logger, runner } = this.#ports
    return await runWorkflow(workflow, {
      options,
      logger,
      runner: this.#processorTime.of(runner),
      job: this.#job,
      inputs,
      directory,
      checkpoint: (folder, work) => this.#checkpointOf(folder, work),
      steps: hasSteps ? this.#steps(directory) : undefined,
      policy: this.#policy,
      spans: this.#spans,
      // Absent if the host requested this run: then, steps may need any label.
      offers: this.#stages && offersTo(this.#job.pool, options.dispatch.labels),
      signal: this.#controller.signal,
      onProgress: ({ stage, progress }) => this.#heartbeat.report({ stage, progress: fetchShare + share * progress }),
    })
  }

  /** How long to wait for the store before a write is given up. A stopping worker leaves the job to others sooner. */
  #outageMs(): number {
    const { leaseMs, storageOutageMs } = this.#ports.options.dispatch
    const { reason } = this.#controller.signal
    return StemworkError.is(reason) && reason.code === 'SHUTTING_DOWN' ? leaseMs : storageOutageMs
  }

  async #checkpointOf(directory: string, work: string) {
    if (directory === '') return {}
    const checkpoint = await this.#readCheckpoint((signal) => this.#checkpoint.order(directory, signal, work))
    return { checkpoint, host: this.#checkpoint.of(directory, work) }
  }

  #steps(directory: string): AttemptSteps {
    const { jobs, blobs, contact, events, options } = this.#ports
    return attemptSteps({
      jobs,
      blobs,
      job: this.#job,
      directory,
      leaseMs: options.dispatch.leaseMs,
      aheadMs: this.#storeAheadMs,
      outageMs: () => this.#outageMs(),
      answeredAt: () => contact.answeredAt,
      signal: this.#controller.signal,
      onFiles: () => this.#checkpoint.noteStepFiles(),
      onKept: (step, job) => {
        events.announce('job.progressed', { job })
        if (step.state === 'done') this.#onKept()
        this.#spans.ended(step)
        this.#log.noteStep(step)
      },
      onRetry: (error) => this.#log.warn('A step could not be kept; trying again.', error),
      throughOutage: (work) => this.#throughOutage(work),
    })
  }

  #publish(result: WorkResult): Promise<Record<string, JobOutput>> {
    return publishOutputs(result, this.#job, {
      blobs: this.#ports.blobs,
      policy: this.#ports.options.fetch,
      signal: this.#controller.signal,
      onFile: () => this.#heartbeat.report({ stage: 'publish', progress: 1 - publishShare }),
      throughOutage: (work) => this.#throughOutage(work),
    })
  }

  /**
   * Waits for an unavailable blob store while the lease is kept, so that an outage costs neither the attempt nor the
   * finished run.
   */
  async #throughOutage<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await throughOutage(work, {
        signal: this.#controller.signal,
        maxMs: this.#ports.options.dispatch.storageOutageMs,
        onFailure: (error) => {
          this.#timeLimit.pause()
          this.#log.warn('The blob store is unavailable; the job waits for it.', error)
        },
      })
    } finally {
      this.#timeLimit.start()
    }
  }

  /** Logs a failure, and returns the change to write. */
  #failure(error: unknown): JobChange | undefined {
    this.#spans.fail(error)
    const answer = answerToFailure(error, {
      job: this.#job,
      attempts: this.#attempts,
      inputs: this.#inputs,
      policy: this.#policy,
      options: this.#ports.options,
      ...this.#processorTime.used,
    })
    if (answer?.kind === 'requeue' && answer.failure !== undefined) {
      this.#log.warn(`Attempt ${this.#attempts} of ${this.#policy.maxAttempts} failed; the job is queued again.`, error)
      if (fullDisk(error)) this.#scratch.noteFull(answer.delayMs)
    }
    if (answer?.kind === 'fail') this.#log.failed(error)
    if (answer?.kind === 'fail' && isSetupError(error)) this.#ports.onSetupError()
    return answer
  }
}
