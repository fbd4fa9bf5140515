import { hostname } from 'node:os'
import { Admission } from './admission.js'
import { type BatchStatus, isOfBatch } from './batch/batch.js'
import { Batches } from './batch/batches.js'
import { checkBatch, jobsOfBatch, type SubmitBatchInput } from './batch/submit-batch.js'
import { bulk, type BulkAction, type BulkReport } from './bulk.js'
import { checkParts, type EngineParts } from './engine-parts.js'
import { closeParts } from './close-parts.js'
import { type EngineHealth, engineHealth } from './engine-health.js'
import { Dispatcher } from './dispatch/dispatcher.js'
import { runToEnd } from './dispatch/run-to-end.js'
import { type GrowingResult, openGrowingResult } from './dispatch/growing-result.js'
import { leaseLost } from './dispatch/heartbeat.js'
import { FileSweep } from './dispatch/file-sweep.js'
import { Maintenance } from './dispatch/maintenance.js'
import { finishDeletion, Sweep, type SweepReport } from './dispatch/sweep.js'
import { shuttingDown, StemworkError } from './errors.js'
import { estimateOf, type JobEstimate, Throughputs } from './estimate.js'
import { type EngineEventName, type EngineEvents, JobEvents } from './events.js'
import { canceled, jobError } from './job/failure.js'
import { jobCheckpointPrefix } from './job/checkpoint-keys.js'
import type { JobRecord } from './job/job.js'
import { newJob } from './job/new-job.js'
import type { Usage } from './job/quota.js'
import type { RuleChange, RuleTarget, SchedulingRule } from './job/scheduling.js'
import { type EngineOptions, type EngineSettings, resolveEngineOptions } from './options.js'
import { ResultPeaks } from './result-peaks.js'
import { retryJob } from './retry-job.js'
import type { ApplicationStore } from './ports/application-store.js'
import type { BlobStore } from './ports/blob-store.js'
import type { JobQueue } from './ports/job-queue.js'
import type { JobPage, JobQuery, JobStore } from './ports/job-store.js'
import type { Logger } from './ports/logger.js'
import type { Runner } from './ports/runner.js'
import { Readiness } from './runner/readiness.js'
import { webhookMessages } from './webhooks/webhook-message.js'
import { Outbox } from './webhooks/outbox.js'
import { withLocalFiles } from './local-file.js'
import { checkPage } from './job-page.js'
import {
  checkSubmission,
  checkSubmitInput,
  idempotencyOf,
  jobRequest,
  requireSameRequest,
  type IdOf,
  type SubmitInputOf,
  type SubmitOptions,
} from './submission.js'
import { inSubmitSpan } from './submit-span.js'
import { type Waiting, waitingOf } from './waiting.js'
import { RememberedRules } from './scheduling-rules.js'
import { WorkflowRegistry } from './workflow/registry.js'
import type { Workflow } from './workflow/workflow.js'
import type { PoolStatus, Worker } from './workers/worker.js'
import { WorkerRegistry } from './workers/worker-registry.js'

export type { BatchStatus } from './batch/batch.js'
export type { SubmitBatchInput } from './batch/submit-batch.js'
export type { BulkAction, BulkReport } from './bulk.js'
export type { EngineHealth } from './engine-health.js'
export type { EngineParts } from './engine-parts.js'
export type { JobEstimate } from './estimate.js'
export type { Waiting } from './waiting.js'
export type { PoolStatus, Worker } from './workers/worker.js'
export type { GrowingResult } from './dispatch/growing-result.js'

/** Places in the queue that are counted. */
const mostAhead = 1000

/** Restricts a call to one application's jobs; others do not exist for it. */
export interface JobScope {
  app?: string
}

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
  readonly #jobs: JobStore
  readonly #queue: JobQueue
  readonly #runner: Runner
  readonly #readiness: Readiness
  readonly #events: JobEvents
  readonly #logger: Logger
  readonly #dispatcher: Dispatcher
  readonly #sweep: Sweep
  readonly #fileSweep: FileSweep
  readonly #outbox: Outbox
  readonly #maintenance: Maintenance
  readonly #peaks: ResultPeaks
  readonly #rules: RememberedRules
  readonly #throughputs: Throughputs
  readonly #admission: Admission
  readonly #batches: Batches
  readonly #workers: WorkerRegistry
  #starting: Promise<void> | undefined
  #closing: Promise<void> | undefined
  readonly #closingSignal = new AbortController()

  /** @throws StemworkError `INVALID_OPTIONS` for wrong options or parts that cannot work together. */
  constructor(parts: EngineParts<Offered>, settings: EngineSettings = {}) {
    checkParts(parts)
    this.options = resolveEngineOptions(settings)
    this.#logger = this.options.logger
    this.workflows = new WorkflowRegistry(parts.workflows)
    this.blobs = parts.blobs
    this.applications = parts.applications
    this.#jobs = parts.jobs
    this.#queue = parts.queue
    this.#runner = parts.runner
    this.#readiness = new Readiness({ runner: parts.runner, workflows: this.workflows.list(), logger: this.#logger })
    this.#events = new JobEvents(this.#logger)
    const shared = {
      ...parts,
      workflows: this.workflows,
      events: this.#events,
      options: this.options,
      logger: this.#logger,
      onEnd: (job: JobRecord) => this.#reportEnd(job),
      onSetupError: () => this.#readiness.forget(),
    }
    const owner = this.options.owner ?? `${hostname()}:${process.pid}`
    this.#dispatcher = new Dispatcher(shared, owner)
    this.#sweep = new Sweep(shared)
    this.#fileSweep = new FileSweep(shared)
    this.#outbox = new Outbox(shared)
    this.#maintenance = new Maintenance({
      sweep: this.#sweep,
      fileSweep: this.#fileSweep,
      wake: () => this.#dispatcher.wake(),
      sendWebhooks: () => this.sendWebhooks(),
      sweepIntervalMs: this.options.dispatch.sweepIntervalMs,
      logger: this.#logger,
    })
    this.#rules = new RememberedRules(parts.jobs)
    this.#admission = new Admission(shared)
    this.#batches = new Batches(shared)
    const { concurrency: slots, labels, leaseMs } = this.options.dispatch
    this.#workers = new WorkerRegistry({
      jobs: parts.jobs,
      self: { owner, workflows: this.workflows.list().map(({ id }) => id), labels, slots },
      running: () => this.#dispatcher.running,
      beatMs: leaseMs,
      logger: this.#logger,
    })
    this.#throughputs = new Throughputs(parts.jobs, this.#workers)
    this.#peaks = new ResultPeaks(parts.blobs, parts.audioPeaks)
  }

  /**
   * Accepts a job: after it returns, the job is durable and will be run. A repeat with a known `idempotencyKey` returns its job
   * before anything else is looked at that may have changed since.
   *
   * @throws StemworkError `UNKNOWN_WORKFLOW`; `INVALID_PARAMS` with `details.issues` (`path`, `message`); `QUEUE_FULL`; `QUOTA_EXCEEDED` with
   * `details` (`quota`, `limit`, `used`, `resetsAt`); `DRAINING`;
   * `IDEMPOTENCY_CONFLICT` for a known key with other content; `SHUTTING_DOWN`.
   */
  async submit<Id extends IdOf<Offered>>(
    given: { workflow: Id } & SubmitInputOf<Offered, Id>,
    options: SubmitOptions = {},
  ): Promise<{ job: JobRecord; created: boolean }> {
    if (this.#closing) throw shuttingDown()
    const input = checkSubmitInput(given)
    const idempotency = idempotencyOf(input)
    const first = idempotency && (await this.#jobs.findByIdempotencyKey(input.app, idempotency.key))
    if (first) return { job: requireSameRequest(first, idempotency), created: false }
    await this.#rules.refuseDraining(input)
    const complete = checkSubmission(input, this.workflows.require(input.workflow))
    const { limits, fieldsOf } = await this.#admission.of(input.app)
    const { webhook, ...fields } = fieldsOf(complete)
    await options.beforeCreate?.()

    const { job, created } = await withLocalFiles(complete, this.blobs, this.options.limits.maxFileBytes, (ready) =>
      inSubmitSpan(
        this.options.tracing,
        newJob({ ...jobRequest(ready, webhook, idempotency), ...fields }),
        options.trace,
        (made) => this.#jobs.create(made, { tx: options.tx, ...limits }),
      ),
    )
    if (!created) return { job: requireSameRequest(job, idempotency), created }
    this.#events.announce('job.created', job)
    // A job inside an open transaction cannot be claimed yet; one that is committed later still is found by the sweep.
    const delayMs = options.tx === undefined ? 0 : 500
    await this.#notify(delayMs)
    return { job, created }
  }

  /**
   * Accepts many jobs of one application at once, all of them or none. They carry the name of the batch as their `batchName`; a repeat
   * with a known `idempotencyKey` makes no second batch.
   *
   * @example
   * const { name } = await engine.submitBatch({ app: 'me', name: 'album', jobs: songs.map((inputUrl) => ({ workflow, params: { inputUrl } })) })
   * @throws StemworkError `INVALID_PARAMS` with `details.issues` of all jobs (`jobs.3.params.inputUrl`); as `submit`.
   */
  async submitBatch(
    given: SubmitBatchInput,
    options: Pick<SubmitOptions, 'beforeCreate'> = {},
  ): Promise<{ name: string; ids: string[]; created: boolean }> {
    if (this.#closing) throw shuttingDown()
    const batch = checkBatch(given, this.workflows)
    for (const workflow of new Set(batch.jobs.map((job) => job.workflow)))
      await this.#rules.refuseDraining({ app: batch.app, workflow })
    const { limits, fieldsOf } = await this.#admission.of(batch.app)
    const jobs = jobsOfBatch(batch, fieldsOf)
    await options.beforeCreate?.()
    const created = await this.#batches.add({ ...batch, jobs }, limits)
    if (created) {
      for (const job of created) this.#events.announce('job.created', job)
      await this.#notify()
    }
    return { name: batch.name, ids: jobs.map(({ id }) => id), created: created !== undefined }
  }

  /** How a batch stands: the jobs with this `batchName`. `undefined`: there are none. */
  batch(app: string, name: string): Promise<BatchStatus | undefined> {
    return this.#batches.status(app, name)
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
  async bulk(
    action: BulkAction,
    query: JobQuery,
    { limit = 100, after }: { limit?: number; after?: JobPage['after'] } = {},
  ): Promise<BulkReport> {
    const act = (job: JobRecord) => this[action](job.id, { app: job.app })
    return await bulk(action, query, { limit, after }, { list: (page) => this.list(page), act })
  }

  /** What the application has used of its quota today. */
  usage(app: string): Promise<Usage> {
    return this.#jobs.usage(app)
  }

  /** The workers that are alive, as they tell: every engine that was started on this store. One that died is listed for up to three leases. */
  workers(): Promise<Worker[]> {
    return this.#workers.workers()
  }

  /** What waits and runs, by workflow and the labels that its jobs need, and which workers can take it; as of a moment ago. */
  pools(): Promise<PoolStatus[]> {
    return this.#workers.pools()
  }

  /** Why a queued job is not begun, besides the jobs before it; as of a moment ago. `undefined`: it waits for its turn, or not at all. */
  waiting(job: JobRecord): Promise<Waiting | undefined> {
    return waitingOf(job, { rules: this.#rules, workers: this.#workers })
  }

  async get(id: string, scope: JobScope = {}): Promise<JobRecord | undefined> {
    const job = await this.#jobs.get(id)
    return job && isInScope(job, scope) ? job : undefined
  }

  /** Newest first. @throws StemworkError `INVALID_PARAMS` without a `limit`, or with a field that is unknown. */
  async list(page: JobPage): Promise<JobRecord[]> {
    checkPage(page)
    return await this.#jobs.list(page)
  }

  /** @param options.max where the count ends, so that it costs no more than that many jobs. Default: it counts them all. */
  count(query: JobQuery, options?: { max?: number }): Promise<number> {
    return this.#jobs.count(query, options)
  }

  /** Bytes of the result files that an application's jobs keep in the blob store. */
  resultBytes(app: string): Promise<number> {
    return this.#jobs.resultBytes(app)
  }

  /**
   * Peaks of an audio result as JSON (audiowaveform, version 2), measured at the first call and kept beside the result.
   * `undefined`: no such file, or nothing here that measures.
   *
   * @throws StemworkError `BAD_INPUT` for a result that is not audio; the signal's reason.
   */
  peaks(job: JobRecord, output: string, options: { signal?: AbortSignal } = {}): Promise<string | undefined> {
    return this.#peaks.of(job, output, options.signal)
  }

  /**
   * A result of a job that is running in this process, as far as it is made. It can be read while it grows; its bytes are those of the
   * result, but for the lengths in its header. `undefined`: nothing of it is here.
   */
  async growingResult(job: JobRecord, output: string): Promise<GrowingResult | undefined> {
    const workflow = this.workflows.get(job.workflow)
    const directory = job.status === 'STARTED' ? await this.#dispatcher.scratchOf(job) : undefined
    if (!workflow || directory === undefined) return undefined
    const declared = workflow.outputs(workflow.params.parse(job.params) as Record<string, unknown>)
    const declaration = Object.hasOwn(declared, output) ? declared[output] : undefined
    if (!declaration) return undefined
    return openGrowingResult({ job, output, declaration, directory, look: () => this.#jobs.get(job.id) })
  }

  /** Whether a job runs in this process; one that is STARTED and does not runs in another. */
  isRunningHere(id: string): boolean {
    return this.#dispatcher.isRunning(id)
  }

  /**
   * The place of a queued job among those of its application, which is what it waits for besides the turns of other applications: 1 is
   * the next. `undefined` for a job that does not wait, or not yet. Cheap: places beyond 1,000 are told as 1,001.
   */
  async place(id: string): Promise<number | undefined> {
    const ahead = await this.#jobs.ahead(id, { max: mostAhead })
    return ahead === undefined ? undefined : ahead + 1
  }

  /**
   * When a job that waits or runs will probably begin and end, from its progress and the times of jobs that ended of late. `undefined`
   * where too little was measured: before a job of its workflow has succeeded, while it is paused, or its application has none running.
   */
  async estimate(job: JobRecord): Promise<JobEstimate | undefined> {
    if (job.status !== 'QUEUED' && job.status !== 'STARTED') return undefined
    const place = job.status === 'QUEUED' ? await this.place(job.id) : undefined
    return estimateOf(job, place, await this.#throughputs.of(job), Date.now())
  }

  /** What was decided about applications, workflows and the deployment; those rules that say something. */
  schedulingRules(): Promise<SchedulingRule[]> {
    return this.#jobs.rules()
  }

  /**
   * Pauses, drains or opens an application, a workflow or the whole deployment, or limits how many of its jobs run at a time on all
   * workers. Kept in the store: claims of any process know it at once, submits within a second. Running jobs go on.
   *
   * @example await engine.schedule({ kind: 'workflow', id: 'service/stems' }, { state: 'paused' })
   * @throws StemworkError `INVALID_PARAMS`.
   */
  async schedule(target: RuleTarget, change: RuleChange): Promise<void> {
    await this.#rules.change(target, change)
    this.#logger.info({ target, change }, 'A scheduling rule was changed.')
    // There may be work now.
    await this.#notify()
  }

  /** Ends a queued job as FAILED with `CANCELED` and asks a running one to stop. Ended jobs stay as they are. */
  async cancel(id: string, scope: JobScope = {}): Promise<JobRecord | undefined> {
    const known = await this.get(id, scope)
    if (!known) return undefined
    const job = await this.#jobs.apply(id, {
      kind: 'cancel',
      error: jobError(canceled()),
      retentionMs: this.options.retention.failedInputsMs,
      messages: webhookMessages(known, 'job.failed'),
    })
    if (!job) return this.get(id, scope)
    if (job.status === 'FAILED') {
      await this.#discardCheckpoint(job)
      this.#reportEnd(job)
      this.#events.announce('job.failed', job)
    } else {
      this.#dispatcher.interrupt(id, canceled())
    }
    return job
  }

  /**
   * Queues a FAILED job again, with its params and inputs; its attempts count anew, and it counts as a new job against the limits. Uploads
   * are kept until `expiresAt` of the job, and so is the work of an attempt that failed inside the service, where checkpoints are kept.
   * `undefined`: there is no such job.
   *
   * @throws StemworkError `NOT_FAILED`; `INPUT_EXPIRED`; `QUEUE_FULL`; `QUOTA_EXCEEDED`; `DRAINING`; `SHUTTING_DOWN`.
   */
  async retry(id: string, scope: JobScope = {}): Promise<JobRecord | undefined> {
    if (this.#closing) throw shuttingDown()
    const known = await this.get(id, scope)
    if (!known) return undefined
    await this.#rules.refuseDraining(known)
    const { limits } = await this.#admission.of(known.app)
    // First, so that nobody takes the batch for ended meanwhile.
    if (isOfBatch(known)) await this.#batches.reopen(known)
    const job = await retryJob(known, limits, { jobs: this.#jobs, blobs: this.blobs }).catch((error: unknown) => {
      this.#lookAtBatch(known)
      throw error
    })
    if (!job) return undefined
    this.#events.announce('job.requeued', job)
    await this.#notify()
    return job
  }

  /**
   * Deletes a job in any state: it is gone for every reader at once, a running attempt is aborted and its result discarded,
   * result files and uploaded input are removed. `undefined`: there was no such job.
   */
  async delete(id: string, scope: JobScope = {}): Promise<JobRecord | undefined> {
    const known = await this.get(id, scope)
    if (!known) return undefined
    const job = await this.#jobs.apply(id, { kind: 'delete' })
    if (!job) return undefined
    this.#dispatcher.interrupt(id, leaseLost())
    try {
      await finishDeletion(job, { jobs: this.#jobs, blobs: this.blobs })
    } catch (error) {
      this.#logger.warn(
        { jobId: id, err: error },
        'The files of a deleted job could not be removed; the sweep will do it.',
      )
    }
    this.#events.announce('job.deleted', job)
    this.#lookAtBatch(job)
    return known
  }

  /**
   * Runs one job in this process, the named one or the next in turn, and resolves when it has ended, SUCCEEDED or FAILED, retries and
   * their waits included; what another worker does of it is waited for. `undefined`: no such job (any more), or nothing to run. The
   * signal hands the job back to the queue without counting the attempt.
   *
   * @throws the signal's reason; StemworkError `SHUTTING_DOWN` when the engine closes.
   */
  run(id?: string, { signal }: { signal?: AbortSignal } = {}): Promise<JobRecord | undefined> {
    const ports = { jobs: this.#jobs, events: this.#events, dispatcher: this.#dispatcher }
    return runToEnd(ports, id, { signal, closing: this.#closingSignal.signal })
  }

  /**
   * Makes one attempt, for hosts whose time is short, such as a serverless function: the job may come back QUEUED, for a retry that is
   * due at `notBefore`. `undefined`: nothing to claim.
   */
  runOnce(id?: string): Promise<JobRecord | undefined> {
    return this.#dispatcher.run(id)
  }

  /**
   * Makes this process a worker: it claims jobs when it is notified, and the sweep finishes what crashes left undone. Before that it
   * is made `ready()`. Calls that come together start it once; after a failure it may be called again. A host that only submits jobs
   * does not call it. A started engine with nothing to do does not keep its process alive.
   *
   * @throws StemworkError as `ready()` does; `SHUTTING_DOWN` after `close()`: an engine is started no second time. Errors of the
   * queue as they are.
   */
  async start(): Promise<void> {
    if (this.#closing) throw closedForGood()
    this.#starting ??= this.#start().catch((error: unknown) => {
      this.#starting = undefined
      throw error
    })
    await this.#starting
  }

  /**
   * Resolves when jobs can run in this process: a child process has started once, and each workflow has loaded what it needs there, such
   * as a network. Later calls cost nothing; after a failure the check is made again.
   *
   * @throws StemworkError with the remedy: `RUNNER_UNAVAILABLE` if the child cannot start; `MISSING_DEPENDENCY`, `MODEL_UNAVAILABLE` and
   * the like from the workflows.
   */
  ready(): Promise<void> {
    return this.#readiness.check({ again: true })
  }

  /**
   * One sweep now; with `files` also the slow part, which looks at all files and removes those that belong to nothing. If these are
   * most of 20 files or more, none is removed unless `allowMassRemoval` is given: the job store may be the wrong one.
   */
  async sweep({ files = false, allowMassRemoval = false } = {}): Promise<SweepReport> {
    const swept = await this.#sweep.run()
    const sweptFiles = files ? await this.#fileSweep.run({ allowMassRemoval }) : { uploads: 0, orphans: 0 }
    return { ...swept, ...sweptFiles }
  }

  /** Sends the webhook messages that are due, of jobs and of batches; resolves with their number. A started engine does it by itself. */
  async sendWebhooks(): Promise<number> {
    const [ofJobs, ofBatches] = await Promise.all([this.#outbox.send(), this.#batches.tend()])
    return ofJobs + ofBatches
  }

  /**
   * Takes no new job, waits up to `timeoutMs` for running ones, hands the rest back to the queue without counting the attempt,
   * and ends the child processes. Every part is closed, also when another fails; none is waited for longer than `timeoutMs` and
   * one lease (running jobs) or 10 s (each of the rest). Calling it again returns the same promise.
   *
   * @throws StemworkError `CLOSE_FAILED` with the parts that failed in `details.parts`.
   */
  close(options: { timeoutMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(options.timeoutMs ?? 10_000)
    return this.#closing
  }

  /**
   * Whether the parts do their work. Where this engine runs jobs (it was started, or no other process reaches its store), also whether
   * it can: the first call makes it `ready()`, the others cost nothing.
   */
  health(): Promise<EngineHealth> {
    const runsJobs = this.#starting !== undefined || this.#jobs.traits.scope === 'process'
    return engineHealth(
      {
        jobs: this.#jobs,
        queue: this.#queue,
        runner: this.#runner,
        dispatcher: this.#dispatcher,
        fileSweep: this.#fileSweep,
        readiness: this.#readiness,
        workers: this.#workers,
        options: this.options,
        logger: this.#logger,
      },
      { runsJobs, isClosing: this.#closing !== undefined },
    )
  }

  on<Name extends EngineEventName>(name: Name, listener: EngineEvents[Name]): this {
    this.#events.on(name, listener)
    return this
  }

  off<Name extends EngineEventName>(name: Name, listener: EngineEvents[Name]): this {
    this.#events.off(name, listener)
    return this
  }

  async #start(): Promise<void> {
    await this.ready()
    if (this.#closing) throw closedForGood()
    await this.#dispatcher.start()
    if (this.#closing) throw closedForGood()
    await this.#workers.start()
    if (this.#closing) return await this.#workers.stop()
    this.#maintenance.start()
  }

  #close(timeoutMs: number): Promise<void> {
    // A running attempt is the dispatcher's to end; this ends the waits between attempts.
    this.#closingSignal.abort(shuttingDown())
    this.#maintenance.stop()
    this.#batches.close()
    // An interrupted attempt sends no heartbeat any more: after one lease its job belongs to another worker.
    const dispatchMs = timeoutMs + this.options.dispatch.leaseMs
    return closeParts(
      [
        [{ name: 'dispatcher', close: () => this.#dispatcher.stop(timeoutMs), timeoutMs: dispatchMs }],
        [
          { name: 'sweep', close: () => this.#maintenance.finished() },
          { name: 'webhooks', close: () => this.#outbox.close() },
          { name: 'workers', close: () => this.#workers.stop() },
        ],
        [
          { name: 'queue', close: () => this.#queue.close() },
          { name: 'runner', close: () => this.#runner.close() },
        ],
      ],
      this.#logger,
    )
  }

  async #discardCheckpoint({ id, startedAt }: JobRecord): Promise<void> {
    if (startedAt === null) return
    await this.blobs
      .deletePrefix(jobCheckpointPrefix(id))
      .catch((error: unknown) =>
        this.#logger.warn({ jobId: id, err: error }, 'A checkpoint could not be removed; the sweep will do it.'),
      )
  }

  async #notify(delayMs = 0): Promise<void> {
    await this.#queue
      .notify({ delayMs })
      .catch((error: unknown) =>
        this.#logger.warn({ err: error }, 'No worker could be notified; the next sweep finds the work.'),
      )
  }

  /** No listener: those may be slow, fail, or be taken away by the host. */
  #reportEnd(job: JobRecord): void {
    if (job.status === 'SUCCEEDED') this.#workers.noteSuccess(job)
    this.#lookAtBatch(job)
    if (this.#maintenance.isStarted && job.webhook) this.#maintenance.sendWebhooksSoon()
  }

  /** Nothing waits for it: what is missed is found by the next sweep. */
  #lookAtBatch(job: JobRecord): void {
    if (!isOfBatch(job)) return
    this.#batches.look(job).then(
      () => void (this.#maintenance.isStarted && this.#maintenance.sendWebhooksSoon()),
      (error: unknown) =>
        this.#logger.warn({ jobId: job.id, err: error }, 'The batch of a job could not be looked at; a sweep does it.'),
    )
  }
}

function closedForGood(): StemworkError {
  return new StemworkError('SHUTTING_DOWN', 'The engine was closed and cannot be started again. Make a new one.')
}

function isInScope(job: JobRecord, scope: JobScope): boolean {
  return scope.app === undefined || job.app === scope.app
}
