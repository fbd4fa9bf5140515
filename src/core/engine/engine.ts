import { assemble, type EngineAssembly } from './assembly.js'
import type { BatchStatus } from './batch/batch.js'
import type { SubmitBatchInput } from './intake/submit-batch.js'
import { bulk, type BulkAction, type BulkOptions, type BulkReport } from './intake/bulk.js'
import type { EngineParts } from './engine-parts.js'
import type { EngineHealth } from './lifecycle/engine-health.js'
import { policyOf } from './dispatch/attempt/policy.js'
import { runToEnd } from './dispatch/run-to-end.js'
import { type GrowingResult, growingResult } from './dispatch/growing-result.js'
import type { SweepReport } from './dispatch/sweep/sweep.js'
import type { JobEstimate } from './queries/estimate.js'
import type { EngineEventName, EngineEvents } from './events.js'
import type { JobRecord } from './job/job.js'
import type { LedgerEntry, LedgerTotal } from './job/ledger.js'
import type { LimitChange, Usage } from './job/quota.js'
import type { RuleChange, RuleTarget, SchedulingRule } from './job/scheduling.js'
import type { EngineOptions, EngineSettings } from './options.js'
import type { ApplicationStore } from './ports/application-store.js'
import type { BlobStore } from './ports/blob-store.js'
import type { JobPage, JobQuery } from './ports/job-store.js'
import { checkPage } from './queries/job-page.js'
import { type FoundJobs, searchJobs } from './queries/job-search.js'
import { jobInScope, type JobScope } from './queries/job-scope.js'
import { usageOf } from './limits/audio-charges.js'
import { type ApplicationLimits, chargeAudio, limitsOf, setLimits } from './limits/limits.js'
import { positionOf } from './queries/queue-position.js'
import type { IdOf, SubmitInputOf, SubmitOptions } from './intake/submission.js'
import { usageEntries, type UsageEntriesQuery, usageTotals, type UsageTotalsQuery } from './queries/ledger-query.js'
import { type Waiting, waitingOf } from './queries/waiting.js'
import type { FailingReceiver } from './job/receiver.js'
import type { WorkflowRegistry } from './workflow/registry.js'
import type { Workflow } from './workflow/workflow.js'
import type { PoolStatus, Worker, WorkerState } from './workers/worker.js'
import { StemworkError } from './errors.js'

export type { BatchStatus } from './batch/batch.js'
export type { SubmitBatchInput } from './intake/submit-batch.js'
export type { BulkAction, BulkOptions, BulkReport } from './intake/bulk.js'
export type { EngineHealth } from './lifecycle/engine-health.js'
export type { EngineParts } from './engine-parts.js'
export type { JobEstimate } from './queries/estimate.js'
export type { FoundJobs } from './queries/job-search.js'
export type { JobScope } from './queries/job-scope.js'
export type { LimitChange, Limits } from './job/quota.js'
export type { ApplicationLimits } from './limits/limits.js'
export type { FailingReceiver } from './job/receiver.js'
export type { UsageEntriesQuery, UsageTotalsQuery } from './queries/ledger-query.js'
export type { Waiting } from './queries/waiting.js'
export type { PoolStatus, Worker, WorkerState } from './workers/worker.js'
export type { GrowingResult } from './dispatch/growing-result.js'

/**
 * Accepts jobs, runs them and keeps their results. Constructing one starts nothing; `start()` makes this process a
 * worker.
 *
 * @example
 * const engine = createEngine({ workflows: [stemsWorkflow()] })
 * await engine.start()
 * const workflow = 'service/stems-vocals-accompaniment'
 * const { job } = await engine.submit({ app: 'me', workflow, params: { inputUrl } })
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
   * Accepts a job, which is then durable and will run. A repeat with a known `idempotencyKey` returns its job without
   * further checks.
   *
   * @throws StemworkError `UNKNOWN_WORKFLOW`; `INVALID_PARAMS` with `details.issues` (`path`, `message`); `QUEUE_FULL`;
   * `QUOTA_EXCEEDED` with `details` (`quota`, `limit`, `used`, `resetsAt`); `DRAINING`; `IDEMPOTENCY_CONFLICT` for a
   * known key with other content; `WORKFLOW_UNAVAILABLE`; `SHUTTING_DOWN`.
   */
  submit<Id extends IdOf<Offered>>(
    given: { workflow: Id } & SubmitInputOf<Offered, Id>,
    options: SubmitOptions = {},
  ): Promise<{ job: JobRecord; created: boolean }> {
    return this.#parts.intake.submit(given, options)
  }

  /**
   * Accepts many jobs of one application at once, all of them or none. They carry the name of the batch as their
   * `batchName`; a repeat with a known `idempotencyKey` creates no second batch.
   *
   * @example
   * const jobs = songs.map((inputUrl) => ({ workflow, params: { inputUrl } }))
   * const { name } = await engine.submitBatch({ app: 'me', name: 'album', jobs })
   * @throws StemworkError `INVALID_PARAMS` with `details.issues` of all jobs (`jobs.3.params.inputUrl`); as `submit`.
   */
  submitBatch(
    given: SubmitBatchInput,
    options: Pick<SubmitOptions, 'beforeCreate' | 'trace'> = {},
  ): Promise<{ name: string; ids: string[]; created: boolean }> {
    return this.#parts.intake.submitBatch(given, options)
  }

  /** The state of a batch: the jobs with this `batchName`. `undefined`: there are none. */
  batch(app: string, name: string): Promise<BatchStatus | undefined> {
    return this.#parts.batches.status(app, name)
  }

  /**
   * Cancels, retries or deletes up to `limit` matching jobs, newest first. Continue with `after: report.next`; calls
   * may be repeated.
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

  /** What the application used of its quota today. */
  usage(app: string): Promise<Usage> {
    return usageOf(app, this.#parts.jobs)
  }

  /**
   * Counts seconds of audio that no job had, such as those of a live stream, against the application's quota of today.
   *
   * @throws StemworkError `QUOTA_EXCEEDED` once the quota is used up; the seconds count all the same
   */
  chargeAudio(app: string, seconds: number): Promise<void> {
    return chargeAudio(app, seconds, { ...this.#parts, applications: this.applications })
  }

  /**
   * Sums of what the jobs used that ended in these UTC days, by `day`, `app` and `workflow` as `groupBy` says; kept
   * beyond the jobs for `retention.usageMs`.
   *
   * @example await engine.usageTotals({ from: Date.parse('2026-11-01'), to: Date.now(), groupBy: ['app'] })
   * @throws StemworkError `INVALID_PARAMS`; `NOT_FOUND` for a store without a ledger.
   */
  usageTotals(query: UsageTotalsQuery): Promise<LedgerTotal[]> {
    return usageTotals(this.#parts.jobs, query)
  }

  /**
   * The ends of jobs in these UTC days, one entry each, in the order of their times; continue with
   * `after: entries.at(-1)`.
   *
   * @throws StemworkError as `usageTotals`.
   */
  usageEntries(query: UsageEntriesQuery): Promise<LedgerEntry[]> {
    return usageEntries(this.#parts.jobs, query)
  }

  /** An application's limits: its own, those in effect, and what it used today. */
  limits(app: string): Promise<ApplicationLimits> {
    return limitsOf(app, { ...this.#parts, applications: this.applications })
  }

  /**
   * Sets an application's own limits, for all processes. `null` restores the default; omitted limits do not change.
   * Accepted jobs still run. Given the `revision` of `limits`, it changes nothing if the limits have been set since
   * then.
   *
   * @example await engine.setLimits('me', { audioMinutes: 600, maxQueuedJobs: null })
   * @throws StemworkError `INVALID_PARAMS`; `NOT_FOUND` for an unknown application; `CONFLICT` (retryable while others
   * change them).
   */
  setLimits(app: string, change: LimitChange, { revision }: { revision?: string } = {}): Promise<void> {
    return setLimits(app, change, { ...this.#parts, applications: this.applications, revision })
  }

  /**
   * The live workers, as they report themselves: every engine started on this store. A dead one stays listed for up to
   * three leases.
   */
  workers(): Promise<Worker[]> {
    return this.#parts.workers.workers()
  }

  /**
   * Takes a worker out of service, for maintenance, or back in: by its name (`owner`), which `workers()` has. It
   * follows with its next heartbeat, within `dispatch.leaseMs`.
   *
   * @throws StemworkError `NOT_FOUND` if no worker of this name lives.
   */
  async setWorkerState(owner: string, state: WorkerState): Promise<void> {
    const found = await this.#parts.workers.setState(owner, state)
    if (found === 0)
      throw new StemworkError('NOT_FOUND', `No worker named ${owner} is running. \`workers()\` lists those that are.`)
    this.#parts.logger.info({ owner, state }, 'The state of a worker was changed.')
  }

  /** Waiting and running jobs by workflow and required labels, and the workers that can take them; slightly delayed. */
  pools(): Promise<PoolStatus[]> {
    return this.#parts.workers.pools()
  }

  /**
   * Why a queued job does not start, besides the jobs before it; slightly delayed. `undefined`: no other reason, or not
   * waiting.
   */
  waiting(job: JobRecord): Promise<Waiting | undefined> {
    return waitingOf(job, this.#parts)
  }

  /** After how many attempts without progress the job is given up: the policy of its workflow. */
  maxAttempts({ workflow }: Pick<JobRecord, 'workflow'>): number {
    return policyOf(workflow, this.workflows.get(workflow)?.policy, this.options).maxAttempts
  }

  /**
   * Whether the name is used for the first time, of all processes that share the store; it is kept for `keepMs`. For
   * codes that are good for one use.
   */
  async useOnce(name: string, keepMs: number): Promise<boolean> {
    const { documents } = this.#parts.jobs
    return (await documents.put({ kind: 'used', key: name, value: null, ttlMs: keepMs }, { version: 0 })) !== undefined
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
   * Up to `limit` jobs that also meet `where`, newest first, for conditions without an index; one call checks up to
   * 2,000 matching jobs. Continue with `after: next` until there is none.
   *
   * @example await engine.search({ app: 'me', limit: 50 }, ({ metadata }) => metadata.album === 'Kind of Blue')
   * @throws StemworkError `INVALID_PARAMS` as `list`.
   */
  async search(page: JobPage, where?: (job: JobRecord) => boolean): Promise<FoundJobs> {
    checkPage(page)
    return await searchJobs(page, where, (each) => this.#parts.jobs.list(each))
  }

  /** @param options.max where counting stops, to limit its cost. Default: it counts them all. */
  count(query: JobQuery, options?: { max?: number }): Promise<number> {
    return this.#parts.jobs.count(query, options)
  }

  /** Bytes of the result files that an application's jobs keep in the blob store. */
  resultBytes(app: string): Promise<number> {
    return this.#parts.jobs.resultBytes(app)
  }

  /**
   * Peaks of an audio result as JSON (audiowaveform, version 2), measured at the first call and stored next to the
   * result. `undefined`: no such file, or no `peaks` part.
   *
   * @throws StemworkError `BAD_INPUT` for a result that is not audio; the signal's reason.
   */
  peaks(job: JobRecord, output: string, options: { signal?: AbortSignal } = {}): Promise<string | undefined> {
    return this.#parts.peaks.of(job, output, options.signal)
  }

  /**
   * A result, so far as it is written, of a job that runs in this process. It can be read while it grows; its bytes are
   * those of the final result except for the lengths in its header. `undefined`: it does not exist here.
   */
  growingResult(job: JobRecord, output: string): Promise<GrowingResult | undefined> {
    return growingResult(job, output, this.#parts)
  }

  /** Whether a job runs in this process; other STARTED jobs run in another. */
  isRunningHere(id: string): boolean {
    return this.#parts.dispatcher.isRunning(id)
  }

  /**
   * The position of a queued job among those of its application; it also waits for the turns of other applications. 1
   * is the next. `undefined` for a job that is not waiting or not due yet. Cheap: positions beyond 1,000 are returned
   * as 1,001.
   */
  queuePosition(id: string): Promise<number | undefined> {
    return positionOf(this.#parts.jobs, id)
  }

  /**
   * When a waiting or running job will probably start and end, from its progress and the durations of recent jobs.
   * `undefined` without enough data: before a job of its workflow has succeeded, while it is paused, or while its
   * application has none running.
   */
  estimate(job: JobRecord): Promise<JobEstimate | undefined> {
    return this.#parts.throughputs.estimate(job)
  }

  /** The rules for applications, workflows and the deployment that differ from the default. */
  schedulingRules(): Promise<SchedulingRule[]> {
    return this.#parts.jobs.rules()
  }

  /**
   * Pauses, drains or opens an application, a workflow or the whole deployment, or limits how many of its jobs run at a
   * time on all workers. Stored for all processes: claims follow it at once, submits within a second. Running jobs
   * continue.
   *
   * @example await engine.schedule({ kind: 'workflow', id: 'service/stems' }, { state: 'paused' })
   * @throws StemworkError `INVALID_PARAMS`.
   */
  async schedule(target: RuleTarget, change: RuleChange): Promise<void> {
    await this.#parts.rules.change(target, change)
    this.#parts.logger.info({ target, change }, 'A scheduling rule was changed.')
    // Held jobs may be runnable now.
    await this.#parts.waking.wake()
  }

  /** Ends a queued job as FAILED with `CANCELED` and asks a running one to stop. Ended jobs do not change. */
  cancel(id: string, scope: JobScope = {}): Promise<JobRecord | undefined> {
    return this.#parts.ends.cancel(id, scope)
  }

  /**
   * Queues a FAILED job again, with its params and inputs. Its attempts start from zero, and it counts as a new job
   * against the limits. Until the job's `expiresAt`, uploads are kept and, with checkpoints, so is the work of an
   * attempt that failed inside the service. `undefined`: there is no such job.
   *
   * @throws StemworkError `NOT_FAILED`; `INPUT_EXPIRED`; `QUEUE_FULL`; `QUOTA_EXCEEDED`; `DRAINING`; `SHUTTING_DOWN`.
   */
  retry(id: string, scope: JobScope = {}): Promise<JobRecord | undefined> {
    return this.#parts.intake.retry(id, scope)
  }

  /**
   * Gives a job the event that a step of it waits for (`step.waitFor`), or will wait for. The first one counts.
   * `undefined`: there is no such job, it has ended, or that step is over.
   *
   * @param value any JSON of at most 16,384 characters
   * @throws StemworkError `INVALID_PARAMS`
   */
  sendEvent(id: string, name: string, value: unknown = null, scope: JobScope = {}): Promise<JobRecord | undefined> {
    return this.#parts.intake.sendEvent({ id, name, value }, scope)
  }

  /**
   * Deletes a job in any state: it is gone for every reader at once, a running attempt is aborted and its result
   * discarded, and result files and uploaded input are removed. `undefined`: there was no such job.
   */
  delete(id: string, scope: JobScope = {}): Promise<JobRecord | undefined> {
    return this.#parts.ends.delete(id, scope)
  }

  /**
   * Runs one job in this process, the named one or the next in turn. Resolves when the job is SUCCEEDED or FAILED,
   * after all retries and waits, including attempts of other workers. `undefined`: no such job (any more), or nothing
   * to run. The signal hands the job back to the queue without counting the attempt.
   *
   * @throws the signal's reason; StemworkError `SHUTTING_DOWN` when the engine closes.
   */
  run(id?: string, { signal }: { signal?: AbortSignal } = {}): Promise<JobRecord | undefined> {
    return runToEnd(this.#parts, id, { signal, closing: this.#parts.lifecycle.closing })
  }

  /**
   * Makes one attempt, for short-lived hosts such as serverless functions: the job may return to QUEUED, for a retry
   * that is due at `dueAt`. `undefined`: nothing to claim.
   */
  runOnce(id?: string): Promise<JobRecord | undefined> {
    return this.#parts.dispatcher.run(id)
  }

  /**
   * Makes this process a worker: it claims jobs when notified, and the sweep finishes what crashes left undone. It
   * first calls `ready()`. Simultaneous calls start it once; after a failure it may be called again. A host that only
   * submits jobs does not call it. An idle engine does not keep its process alive.
   *
   * @throws StemworkError as `ready()` does; `SHUTTING_DOWN` after `close()`: a closed engine cannot be started again.
   * Errors of the queue are passed on unchanged.
   */
  start(): Promise<void> {
    return this.#parts.lifecycle.start()
  }

  /**
   * Resolves when jobs can run in this process: a child process has started once, and at least one workflow has loaded
   * what it needs there, such as a network; `unavailableWorkflows` has the others. Later calls are free; after a
   * failure, the check is repeated.
   *
   * @throws StemworkError with the remedy: `RUNNER_UNAVAILABLE` if the child cannot start; `MISSING_DEPENDENCY`,
   * `MODEL_UNAVAILABLE` and similar errors from the workflows, if none can run.
   */
  ready(): Promise<void> {
    return this.#parts.lifecycle.ready()
  }

  /**
   * The workflows that lack something here, such as a package, a program or a model, by id with the reason. This
   * process takes none of their jobs; where no other process can, `submit` throws `WORKFLOW_UNAVAILABLE`. What is
   * missing is looked for again every 30 s.
   */
  unavailableWorkflows(): ReadonlyMap<string, string> {
    return this.#parts.readiness.unavailable()
  }

  /**
   * Runs one sweep now. With `files`, it also checks all files, which is slow, and removes orphans. If most of 20 or
   * more files are orphans, none is removed without `allowMassRemoval`: the job store may be the wrong one.
   */
  sweep({ files = false, allowMassRemoval = false } = {}): Promise<SweepReport> {
    return this.#parts.maintenance.sweepNow({ files, allowMassRemoval })
  }

  /**
   * Sends the webhook messages that are due, of jobs and of batches; resolves with their number. A started engine does
   * this on its own.
   */
  sendWebhooks(): Promise<number> {
    return this.#parts.maintenance.sendWebhooks()
  }

  /**
   * The webhook receivers of an application that are failing: a receiver is an origin. After five failures one after
   * another its messages wait, and one at a time is tried; after `webhooks.disableAfterMs` they are given up.
   */
  failingReceivers(app: string): Promise<FailingReceiver[]> {
    return this.#parts.sender.receivers.list(app)
  }

  /** Lets a failing receiver get messages again. @throws StemworkError `NOT_FOUND` if it is not failing. */
  enableReceiver(app: string, origin: string): Promise<void> {
    return this.#parts.sender.receivers.enable(app, origin)
  }

  /**
   * Takes no new job, waits up to `timeoutMs` (default: `dispatch.graceMs`) for running ones, hands the rest back to
   * the queue without counting the attempt, and ends the child processes. Closes every part, even if another one fails.
   * Waits at most `timeoutMs` plus one lease for running jobs, and 10 s for each other part. Calling it again returns
   * the same promise.
   *
   * @throws StemworkError `CLOSE_FAILED` with the parts that failed in `details.parts`.
   */
  close(options: { timeoutMs?: number } = {}): Promise<void> {
    return this.#parts.lifecycle.close(options.timeoutMs ?? this.options.dispatch.graceMs)
  }

  /**
   * Whether the parts work. If this engine runs jobs (it was started, or no other process reaches its store), also
   * whether it can: the first call awaits `ready()`, later ones are free. At most once a minute, a small file is
   * written to the blob store.
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
