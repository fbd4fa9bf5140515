import { assemble, type EngineAssembly } from './assembly.js'
import type { Turn } from './limits/rested.js'
import type { SubmitBatchInput } from './intake/submit-batch.js'
import { bulk, type BulkAction, type BulkOptions, type BulkReport } from './intake/bulk.js'
import type { EngineParts } from './engine-parts.js'
import type { EngineHealth } from './lifecycle/engine-health.js'
import { runToEnd } from './dispatch/run-to-end.js'
import type { SweepReport } from './dispatch/sweep/sweep.js'
import type { EngineEventName, EngineEvents } from './events.js'
import type { JobRecord } from './job/job.js'
import type { LimitChange } from './job/quota.js'
import type { RuleChange, RuleTarget } from './job/scheduling.js'
import type { EngineSettings } from './options.js'
import type { JobPage, JobQuery } from './ports/job-store.js'
import type { JobScope } from './queries/job-scope.js'
import { chargeAudio, setLimits } from './limits/limits.js'
import type { BatchJobOf, IdOf, SubmitInputOf, SubmitOptions } from './intake/submission.js'
import type { Workflow } from './workflow/workflow.js'
import type { WorkerState } from './workers/worker.js'
import { StemworkError } from './errors.js'
import { EngineQueries } from './engine-queries.js'

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
export type { JobLink, JobLinks } from './links/job-links.js'
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
export class JobEngine<Offered extends Workflow = Workflow> extends EngineQueries<Offered> {
  readonly #parts: EngineAssembly<Offered>

  /** @throws StemworkError `INVALID_OPTIONS` for wrong options or parts that cannot work together. */
  constructor(parts: EngineParts<Offered>, settings: EngineSettings = {}) {
    const assembly = assemble(parts, settings)
    super(assembly)
    this.#parts = assembly
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
  submitBatch<Id extends IdOf<Offered>>(
    given: SubmitBatchInput<{ workflow: Id } & BatchJobOf<Offered, Id>>,
    options: Pick<SubmitOptions, 'beforeCreate' | 'trace'> & { turn?: Turn } = {},
  ): Promise<{ name: string; ids: string[]; created: boolean }> {
    return this.#parts.intake.submitBatch(given, options)
  }

  /**
   * Cancels, retries or deletes up to `limit` matching jobs, newest first. Continue with `after: report.next`; calls
   * may be repeated.
   *
   * @example
   * let after
   * do ({ next: after } = await engine.bulk('retry', { app: 'me', createdAfter }, { after })); while (after)
   * @throws StemworkError `INVALID_PARAMS`; the store's error.
   */
  async bulk(action: BulkAction, query: JobQuery, options: BulkOptions = {}): Promise<BulkReport> {
    const act = (job: JobRecord) => this[action](job.id, { app: job.app })
    const list = (page: JobPage) => this.list(page)
    return await bulk(action, query, { ...options, limit: options.limit ?? 100 }, { list, act })
  }

  /**
   * Counts seconds of audio that belong to no job, such as those of a live stream, against today's quota.
   *
   * @throws StemworkError `QUOTA_EXCEEDED` once the quota is used up; the seconds are counted nevertheless
   */
  chargeAudio(app: string, seconds: number): Promise<void> {
    return chargeAudio(app, seconds, this.#parts)
  }

  /**
   * Sets an application's own limits, for all processes. `null` restores the default; omitted limits do not change.
   * Accepted jobs still run. With the `revision` that `limits` returned, the call fails if the limits have changed
   * since then.
   *
   * @example await engine.setLimits('me', { audioMinutes: 600, maxQueuedJobs: null })
   * @throws StemworkError `INVALID_PARAMS`; `NOT_FOUND` for an unknown application; `CONFLICT` (retryable while another
   * process changes them).
   */
  setLimits(app: string, change: LimitChange, { revision }: { revision?: string } = {}): Promise<void> {
    return setLimits(app, change, { ...this.#parts, revision })
  }

  /**
   * Takes a worker out of service for maintenance, or back into service, by its name (`owner` in `workers()`). The
   * worker obeys at its next heartbeat, within `dispatch.leaseMs`.
   *
   * @throws StemworkError `NOT_FOUND` if no live worker has this name.
   */
  async setWorkerState(owner: string, state: WorkerState): Promise<void> {
    const found = await this.#parts.workers.setState(owner, state)
    if (found === 0)
      throw new StemworkError('NOT_FOUND', `No worker named ${owner} is running. Look at the list of workers.`)
    this.#parts.logger.info({ owner, state }, 'The state of a worker was changed.')
  }

  /**
   * Marks a name as used and reports whether it was new among all processes that share the store. The mark is kept for
   * `keepMs`. For one-time codes.
   */
  async useOnce(name: string, keepMs: number): Promise<boolean> {
    const { documents } = this.#parts.jobs
    return (await documents.put({ kind: 'used', key: name, value: null, ttlMs: keepMs }, { version: 0 })) !== undefined
  }

  /**
   * Pauses, drains or opens an application, a workflow or the whole deployment, or limits how many of its jobs run at a
   * time on all workers. The rule is stored for all processes: claims obey it at once, submits within a second. Running
   * jobs continue.
   *
   * @example await engine.schedule({ kind: 'workflow', id: 'service/stems' }, { state: 'paused' })
   * @throws StemworkError `INVALID_PARAMS`.
   */
  async schedule(target: RuleTarget, change: RuleChange): Promise<void> {
    await this.#parts.rules.change(target, change)
    this.#parts.logger.info({ target, change }, 'A scheduling rule was changed.')
    // Jobs that a rule held back may be runnable now.
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
   * Sends a job the event that one of its steps waits for (`step.waitFor`) or will wait for. Only the first event of a
   * name counts. `undefined`: there is no such job, it has ended, or the step has.
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
   * Runs one attempt, for short-lived hosts such as serverless functions: the job may return to QUEUED for a retry at
   * `dueAt`. `undefined`: there was no job to claim.
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
   * Resolves when jobs can run in this process: a child process has started, and at least one workflow has loaded its
   * network or other dependencies there; `unavailableWorkflows` lists the rest. Later calls are free; after a failure,
   * the check is repeated.
   *
   * @throws StemworkError with the remedy: `RUNNER_UNAVAILABLE` if the child cannot start; `MISSING_DEPENDENCY`,
   * `MODEL_UNAVAILABLE` and similar errors from the workflows, if none can run.
   */
  ready(): Promise<void> {
    return this.#parts.lifecycle.ready()
  }

  /**
   * Runs one sweep now. With `files`, it also checks all files, which is slow, and removes orphans. If most of 20 or
   * more files are orphans, none is removed without `allowMassRemoval`: the job store may be the wrong one.
   */
  sweep({ files = false, allowMassRemoval = false } = {}): Promise<SweepReport> {
    return this.#parts.maintenance.sweepNow({ files, allowMassRemoval })
  }

  /**
   * Sends the due webhook messages of jobs and batches, and resolves with their number. A started engine sends them
   * without this call.
   */
  sendWebhooks(): Promise<number> {
    return this.#parts.maintenance.sendWebhooks()
  }

  /** Fires when the engine begins to close. */
  get closing(): AbortSignal {
    return this.#parts.lifecycle.closing
  }

  /** Resumes the messages to a failing receiver. @throws StemworkError `NOT_FOUND` if it is not failing. */
  enableReceiver(app: string, origin: string): Promise<void> {
    return this.#parts.sender.receivers.enable(app, origin)
  }

  /**
   * Takes no new job, waits up to `timeoutMs` (default: `dispatch.graceMs`) for running jobs, hands the rest back to
   * the queue without counting the attempt, and ends the child processes. Closes every part, even if one fails. Waits
   * at most `timeoutMs` plus one lease for running jobs, and 10 s for each other part. Calling it again returns the
   * same promise.
   *
   * @throws StemworkError `CLOSE_FAILED` with the parts that failed in `details.parts`.
   */
  close(options: { timeoutMs?: number } = {}): Promise<void> {
    return this.#parts.lifecycle.close(options.timeoutMs ?? this.options.dispatch.graceMs)
  }

  /**
   * Whether the parts work. If this engine runs jobs (it was started, or no other process reaches its store), also
   * whether jobs can run: the first call awaits `ready()`, later calls are free. At most once a minute (every 10 s
   * after a failure), a small file and a small document are written to the stores and removed.
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
