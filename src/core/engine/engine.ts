import { assemble, type EngineAssembly } from './assembly.js'
import type { BatchStatus } from './batch/batch.js'
import type { SubmitBatchInput } from './batch/submit-batch.js'
import { bulk, type BulkAction, type BulkOptions, type BulkReport } from './bulk.js'
import type { EngineParts } from './engine-parts.js'
import type { EngineHealth } from './engine-health.js'
import { runToEnd } from './dispatch/run-to-end.js'
import { type GrowingResult, growingResult } from './dispatch/growing-result.js'
import type { SweepReport } from './dispatch/sweep.js'
import type { JobEstimate } from './estimate.js'
import type { EngineEventName, EngineEvents } from './events.js'
import type { JobRecord } from './job/job.js'
import type { LimitChange, Usage } from './job/quota.js'
import type { RuleChange, RuleTarget, SchedulingRule } from './job/scheduling.js'
import type { EngineOptions, EngineSettings } from './options.js'
import type { ApplicationStore } from './ports/application-store.js'
import type { BlobStore } from './ports/blob-store.js'
import type { JobPage, JobQuery } from './ports/job-store.js'
import { checkPage } from './job-page.js'
import { type FoundJobs, searchJobs } from './job-search.js'
import { jobInScope, type JobScope } from './job-scope.js'
import { type ApplicationLimits, limitsOf, setLimits } from './limits.js'
import { placeOf } from './place.js'
import type { IdOf, SubmitInputOf, SubmitOptions } from './submission.js'
import { type Waiting, waitingOf } from './waiting.js'
import type { WorkflowRegistry } from './workflow/registry.js'
import type { Workflow } from './workflow/workflow.js'
import type { PoolStatus, Worker } from './workers/worker.js'

export type { BatchStatus } from './batch/batch.js'
export type { SubmitBatchInput } from './batch/submit-batch.js'
export type { BulkAction, BulkOptions, BulkReport } from './bulk.js'
export type { EngineHealth } from './engine-health.js'
export type { EngineParts } from './engine-parts.js'
export type { JobEstimate } from './estimate.js'
export type { FoundJobs } from './job-search.js'
export type { JobScope } from './job-scope.js'
export type { LimitChange, Limits } from './job/quota.js'
export type { ApplicationLimits } from './limits.js'
export type { Waiting } from './waiting.js'
export type { PoolStatus, Worker } from './workers/worker.js'
export type { GrowingResult } from './dispatch/growing-result.js'

/**
 * Accepts jobs, runs them and keeps their results. Constructing one starts nothing; `start()` makes this process a worker.
 *
 * @example
 * const engine = createEngine({ workflows: [stemsWorkflow()] })
 * await engine.start()
 * const { job } = await engine.submit({ app: 'me', workflow: 'service/stems-vocals-accompaniment', params: { inputUrl } })
 * engine.on('job.succeeded', ({ job }) => {})
 */
export class JobEngine<Offered extends Workflow = Workflow> {
  readonly workflows: WorkflowRegistry<Offered>
  readonly blobs: BlobStore
  readonly applications: ApplicationStore
  readonly options: EngineOptions
  readonly #parts: EngineAssembly<Offered>

  /** @throws StemworkError `INVALID_OPTIONS` for wrong options or parts that cannot work together. */
  constructor(parts: EngineParts<Offered>, settings: EngineSettings = {}) {
    this.#parts = assemble(parts, settings)
    this.options = this.#parts.options
    this.workflows = this.#parts.workflows
    this.blobs = parts.blobs
    this.applications = parts.applications
  }

  /**
   * Accepts a job: after it returns, the job is durable and will be run. A repeat with a known `idempotencyKey` returns its job
   * before anything else is looked at that may have changed since.
   *
   * @throws StemworkError `UNKNOWN_WORKFLOW`; `INVALID_PARAMS` with `details.issues` (`path`, `message`); `QUEUE_FULL`; `QUOTA_EXCEEDED` with
   * `details` (`quota`, `limit`, `used`, `resetsAt`); `DRAINING`; `IDEMPOTENCY_CONFLICT` for a known key with other content; `SHUTTING_DOWN`.
   */
  submit<Id extends IdOf<Offered>>(
    given: { workflow: Id } & SubmitInputOf<Offered, Id>,
    options: SubmitOptions = {},
  ): Promise<{ job: JobRecord; created: boolean }> {
    return this.#parts.intake.submit(given, options)
  }

  /**
   * Accepts many jobs of one application at once, all of them or none. They carry the name of the batch as their `batchName`; a repeat
   * with a known `idempotencyKey` makes no second batch.
   *
   * @example
   * const { name } = await engine.submitBatch({ app: 'me', name: 'album', jobs: songs.map((inputUrl) => ({ workflow, params: { inputUrl } })) })
   * @throws StemworkError `INVALID_PARAMS` with `details.issues` of all jobs (`jobs.3.params.inputUrl`); as `submit`.
   */
  submitBatch(
    given: SubmitBatchInput,
    options: Pick<SubmitOptions, 'beforeCreate' | 'trace'> = {},
  ): Promise<{ name: string; ids: string[]; created: boolean }> {
    return this.#parts.intake.submitBatch(given, options)
  }

  /** How a batch stands: the jobs with this `batchName`. `undefined`: there are none. */
  batch(app: string, name: string): Promise<BatchStatus | undefined> {
    return this.#parts.batches.status(app, name)
  }

  /**
   * Cancels, retries or deletes the jobs that match, newest first, at most `limit` of them. Go on with `after: report.next` until there is
   * none; a call that was cut off may be made again.
   *
   * @example
   * let after
   * do ({ next: after } = await engine.bulk('retry', { app: 'me', createdAfter }, { after })); while (after)
   * @throws StemworkError `INVALID_PARAMS`; as the store.
   */
  async bulk(action: BulkAction, query: JobQuery, options: BulkOptions = {}): Promise<BulkReport> {
    const act = (job: JobRecord) => this[action](job.id, { app: job.app })
    const list = (page: JobPage) => this.list(page)
    return await bulk(action, query, { ...options, limit: options.limit ?? 100 }, { list, act })
  }

  /** What the application has used of its quota today. */
  usage(app: string): Promise<Usage> {
    return this.#parts.jobs.usage(app)
  }

  /** What an application may do: its own figures, those that hold, and what it has used today. */
  limits(app: string): Promise<ApplicationLimits> {
    return limitsOf(app, { ...this.#parts, applications: this.applications })
  }

  /**
   * Gives an application figures of its own, for all processes; null: as for all again. What is left out stays. What was accepted is run.
   *
   * @param options.revision that of the `limits` which the change is based on: if others have been set since then, nothing is changed
   * @example await engine.setLimits('me', { audioMinutes: 600, maxQueuedJobs: null })
   * @throws StemworkError `INVALID_PARAMS`; `NOT_FOUND` for an unknown application; `CONFLICT` for a revision that is not the present
   * one, or (retryable) while other changes do not end.
   */
  setLimits(app: string, change: LimitChange, options: { revision?: string } = {}): Promise<void> {
    return setLimits(app, change, {
      ...options,
      applications: this.applications,
      documents: this.#parts.jobs.documents,
    })
  }

  /** The workers that are alive, as they tell: every engine that was started on this store. One that died is listed for up to three leases. */
  workers(): Promise<Worker[]> {
    return this.#parts.workers.workers()
  }

  /** What waits and runs, by workflow and the labels that its jobs need, and which workers can take it; as of a moment ago. */
  pools(): Promise<PoolStatus[]> {
    return this.#parts.workers.pools()
  }

  /** Why a queued job is not begun, besides the jobs before it; as of a moment ago. `undefined`: it waits for its turn, or not at all. */
  waiting(job: JobRecord): Promise<Waiting | undefined> {
    return waitingOf(job, this.#parts)
  }

  get(id: string, scope: JobScope = {}): Promise<JobRecord | undefined> {
    return jobInScope(this.#parts.jobs, id, scope)
  }

  /** Newest first. @throws StemworkError `INVALID_PARAMS` without a `limit`, or with a field that is unknown. */
  async list(page: JobPage): Promise<JobRecord[]> {
    checkPage(page)
    return await this.#parts.jobs.list(page)
  }

  /**
   * Up to `limit` jobs for which `where` holds too, newest first, for what no index has; it looks at up to 2,000 of those that match. Go on
   * with `after: next` until there is none.
   *
   * @example await engine.search({ app: 'me', limit: 50 }, ({ metadata }) => metadata.album === 'Kind of Blue')
   * @throws StemworkError `INVALID_PARAMS` as `list`.
   */
  async search(page: JobPage, where?: (job: JobRecord) => boolean): Promise<FoundJobs> {
    checkPage(page)
    return await searchJobs(page, where, (each) => this.#parts.jobs.list(each))
  }

  /** @param options.max where the count ends, so that it costs no more than that many jobs. Default: it counts them all. */
  count(query: JobQuery, options?: { max?: number }): Promise<number> {
    return this.#parts.jobs.count(query, options)
  }

  /** Bytes of the result files that an application's jobs keep in the blob store. */
  resultBytes(app: string): Promise<number> {
    return this.#parts.jobs.resultBytes(app)
  }

  /**
   * Peaks of an audio result as JSON (audiowaveform, version 2), measured at the first call and kept beside the result.
   * `undefined`: no such file, or nothing here that measures.
   *
   * @throws StemworkError `BAD_INPUT` for a result that is not audio; the signal's reason.
   */
  peaks(job: JobRecord, output: string, options: { signal?: AbortSignal } = {}): Promise<string | undefined> {
    return this.#parts.peaks.of(job, output, options.signal)
  }

  /**
   * A result of a job that is running in this process, as far as it is made. It can be read while it grows; its bytes are those of the
   * result, but for the lengths in its header. `undefined`: nothing of it is here.
   */
  growingResult(job: JobRecord, output: string): Promise<GrowingResult | undefined> {
    return growingResult(job, output, this.#parts)
  }

  /** Whether a job runs in this process; one that is STARTED and does not runs in another. */
  isRunningHere(id: string): boolean {
    return this.#parts.dispatcher.isRunning(id)
  }

  /**
   * The place of a queued job among those of its application, which is what it waits for besides the turns of other applications: 1 is
   * the next. `undefined` for a job that does not wait, or not yet. Cheap: places beyond 1,000 are told as 1,001.
   */
  place(id: string): Promise<number | undefined> {
    return placeOf(this.#parts.jobs, id)
  }

  /**
   * When a job that waits or runs will probably begin and end, from its progress and the times of jobs that ended of late. `undefined`
   * where too little was measured: before a job of its workflow has succeeded, while it is paused, or its application has none running.
   */
  estimate(job: JobRecord): Promise<JobEstimate | undefined> {
    return this.#parts.throughputs.estimate(job)
  }

  /** What was decided about applications, workflows and the deployment; those rules that say something. */
  schedulingRules(): Promise<SchedulingRule[]> {
    return this.#parts.jobs.rules()
  }

  /**
   * Pauses, drains or opens an application, a workflow or the whole deployment, or limits how many of its jobs run at a time on all
   * workers. Kept in the store: claims of any process know it at once, submits within a second. Running jobs go on.
   *
   * @example await engine.schedule({ kind: 'workflow', id: 'service/stems' }, { state: 'paused' })
   * @throws StemworkError `INVALID_PARAMS`.
   */
  async schedule(target: RuleTarget, change: RuleChange): Promise<void> {
    await this.#parts.rules.change(target, change)
    this.#parts.logger.info({ target, change }, 'A scheduling rule was changed.')
    // There may be work now.
    await this.#parts.intake.notify()
  }

  /** Ends a queued job as FAILED with `CANCELED` and asks a running one to stop. Ended jobs stay as they are. */
  cancel(id: string, scope: JobScope = {}): Promise<JobRecord | undefined> {
    return this.#parts.ends.cancel(id, scope)
  }

  /**
   * Queues a FAILED job again, with its params and inputs; its attempts count anew, and it counts as a new job against the limits. Uploads
   * are kept until `expiresAt` of the job, and so is the work of an attempt that failed inside the service, where checkpoints are kept.
   * `undefined`: there is no such job.
   *
   * @throws StemworkError `NOT_FAILED`; `INPUT_EXPIRED`; `QUEUE_FULL`; `QUOTA_EXCEEDED`; `DRAINING`; `SHUTTING_DOWN`.
   */
  retry(id: string, scope: JobScope = {}): Promise<JobRecord | undefined> {
    return this.#parts.intake.retry(id, scope)
  }

  /**
   * Deletes a job in any state: it is gone for every reader at once, a running attempt is aborted and its result discarded,
   * result files and uploaded input are removed. `undefined`: there was no such job.
   */
  delete(id: string, scope: JobScope = {}): Promise<JobRecord | undefined> {
    return this.#parts.ends.delete(id, scope)
  }

  /**
   * Runs one job in this process, the named one or the next in turn, and resolves when it has ended, SUCCEEDED or FAILED, retries and
   * their waits included; what another worker does of it is waited for. `undefined`: no such job (any more), or nothing to run. The
   * signal hands the job back to the queue without counting the attempt.
   *
   * @throws the signal's reason; StemworkError `SHUTTING_DOWN` when the engine closes.
   */
  run(id?: string, { signal }: { signal?: AbortSignal } = {}): Promise<JobRecord | undefined> {
    return runToEnd(this.#parts, id, { signal, closing: this.#parts.lifecycle.closing })
  }

  /**
   * Makes one attempt, for hosts whose time is short, such as a serverless function: the job may come back QUEUED, for a retry that is
   * due at `notBefore`. `undefined`: nothing to claim.
   */
  runOnce(id?: string): Promise<JobRecord | undefined> {
    return this.#parts.dispatcher.run(id)
  }

  /**
   * Makes this process a worker: it claims jobs when it is notified, and the sweep finishes what crashes left undone. Before that it
   * is made `ready()`. Calls that come together start it once; after a failure it may be called again. A host that only submits jobs
   * does not call it. A started engine with nothing to do does not keep its process alive.
   *
   * @throws StemworkError as `ready()` does; `SHUTTING_DOWN` after `close()`: an engine is started no second time. Errors of the
   * queue as they are.
   */
  start(): Promise<void> {
    return this.#parts.lifecycle.start()
  }

  /**
   * Resolves when jobs can run in this process: a child process has started once, and each workflow has loaded what it needs there, such
   * as a network. Later calls cost nothing; after a failure the check is made again.
   *
   * @throws StemworkError with the remedy: `RUNNER_UNAVAILABLE` if the child cannot start; `MISSING_DEPENDENCY`, `MODEL_UNAVAILABLE` and
   * the like from the workflows.
   */
  ready(): Promise<void> {
    return this.#parts.lifecycle.ready()
  }

  /**
   * One sweep now; with `files` also the slow part, which looks at all files and removes those that belong to nothing. If these are
   * most of 20 files or more, none is removed unless `allowMassRemoval` is given: the job store may be the wrong one.
   */
  sweep({ files = false, allowMassRemoval = false } = {}): Promise<SweepReport> {
    return this.#parts.maintenance.sweepNow({ files, allowMassRemoval })
  }

  /** Sends the webhook messages that are due, of jobs and of batches; resolves with their number. A started engine does it by itself. */
  sendWebhooks(): Promise<number> {
    return this.#parts.maintenance.sendWebhooks()
  }

  /**
   * Takes no new job, waits up to `timeoutMs` for running ones, hands the rest back to the queue without counting the attempt,
   * and ends the child processes. Every part is closed, also when another fails; none is waited for longer than `timeoutMs` and
   * one lease (running jobs) or 10 s (each of the rest). Calling it again returns the same promise.
   *
   * @throws StemworkError `CLOSE_FAILED` with the parts that failed in `details.parts`.
   */
  close(options: { timeoutMs?: number } = {}): Promise<void> {
    return this.#parts.lifecycle.close(options.timeoutMs ?? 10_000)
  }

  /**
   * Whether the parts do their work. Where this engine runs jobs (it was started, or no other process reaches its store), also whether
   * it can: the first call makes it `ready()`, the others cost nothing. The blob store takes a small file, once a minute at most.
   */
  health(): Promise<EngineHealth> {
    return this.#parts.lifecycle.health()
  }

  on<Name extends EngineEventName>(name: Name, listener: EngineEvents[Name]): this {
    this.#parts.events.on(name, listener)
    return this
  }

  off<Name extends EngineEventName>(name: Name, listener: EngineEvents[Name]): this {
    this.#parts.events.off(name, listener)
    return this
  }
}
