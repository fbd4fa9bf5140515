import type { EngineAssembly } from './assembly.js'
import type { BatchStatus } from './batch/batch.js'
import { policyOf } from './dispatch/attempt/policy.js'
import { type GrowingResult, growingResult } from './dispatch/growing-result.js'
import { type JobEstimate, positionOf } from './queries/estimate.js'
import type { JobRecord } from './job/job.js'
import { JobLinks } from './links/job-links.js'
import type { LedgerEntry, LedgerTotal } from './job/ledger.js'
import type { Usage } from './job/quota.js'
import type { SchedulingRule } from './job/scheduling.js'
import type { EngineOptions } from './options.js'
import type { ApplicationStore } from './ports/application-store.js'
import type { BlobStore } from './ports/blob-store.js'
import type { JobPage, JobQuery } from './ports/job-store.js'
import { checkPage } from './queries/job-page.js'
import { type FoundJobs, searchJobs } from './queries/job-search.js'
import { jobInScope, type JobScope } from './queries/job-scope.js'
import { usageOf } from './limits/audio-charges.js'
import { type ApplicationLimits, limitsOf } from './limits/limits.js'
import type { Turn } from './limits/rested.js'
import { usageEntries, type UsageEntriesQuery, usageTotals, type UsageTotalsQuery } from './queries/ledger-query.js'
import { type Waiting, waitingOf } from './queries/waiting.js'
import type { FailingReceiver } from './job/receiver.js'
import type { WorkflowRegistry } from './workflow/registry.js'
import type { Workflow } from './workflow/workflow.js'
import type { PoolStatus, Worker } from './workers/worker.js'

/** The queries of an engine, about jobs, results, limits and workers. No query changes a job. */
export class EngineQueries<Offered extends Workflow = Workflow> {
  readonly workflows: WorkflowRegistry<Offered>
  readonly blobs: BlobStore
  readonly applications: ApplicationStore
  readonly options: EngineOptions
  /** Links to single jobs, which the HTTP side signs and opens: `POST /job/{id}/link`. */
  readonly links: JobLinks
  readonly #parts: EngineAssembly<Offered>

  /** @internal */
  constructor(parts: EngineAssembly<Offered>) {
    this.#parts = parts
    this.options = parts.options
    this.workflows = parts.workflows
    this.blobs = parts.blobs
    this.applications = parts.applications
    this.links = new JobLinks(parts.jobs.documents, parts.clock)
  }

  get(id: string, scope: JobScope = {}): Promise<JobRecord | undefined> {
    return jobInScope(this.#parts.jobs, id, scope)
  }

  /** Jobs, newest first. @throws StemworkError `INVALID_PARAMS` without a `limit`, or for an unknown field. */
  async list(page: JobPage): Promise<JobRecord[]> {
    checkPage(page)
    return await this.#parts.jobs.list(page)
  }

  /**
   * Up to `limit` jobs that also meet `where`, a condition without an index, newest first. Jobs are read a few at a
   * time; one call checks up to 2,000 of them. Continue with `after: next` until there is none.
   *
   * @example await engine.search({ app: 'me', limit: 50 }, ({ metadata }) => metadata.album === 'Kind of Blue')
   * @throws StemworkError `INVALID_PARAMS` as `list` does.
   */
  async search(page: JobPage, where?: (job: JobRecord) => boolean): Promise<FoundJobs> {
    checkPage(page)
    return await searchJobs(page, where, (each) => this.#parts.jobs.list(each))
  }

  /** @param options.max where counting stops, to limit its cost. Default: never. */
  count(query: JobQuery, options?: { max?: number }): Promise<number> {
    return this.#parts.jobs.count(query, options)
  }

  /**
   * The state of a batch: the jobs with this `batchName`. `undefined`: there are none.
   *
   * @param options.turn runs each read of a few running jobs. Default: pauses between the reads
   */
  batch(app: string, name: string, options: { turn?: Turn } = {}): Promise<BatchStatus | undefined> {
    return this.#parts.batches.status(app, name, options.turn)
  }

  /**
   * The position of a queued job among those of its application; 1 is the next. The turns of other applications come on
   * top. `undefined` for a job that is not waiting or not due yet. Cheap: positions beyond 1,000 are returned as 1,001.
   */
  queuePosition(id: string): Promise<number | undefined> {
    return positionOf(this.#parts.jobs, id)
  }

  /**
   * Estimates when a waiting or running job will start and end: from its progress, from the time that recent jobs with
   * the same settings took per second of audio (or per byte), and from the order of the queue. `undefined` without
   * enough data: before a job of its workflow has succeeded or this one has done a tenth, while it is paused, or while
   * no worker takes it.
   */
  estimate(job: JobRecord): Promise<JobEstimate | undefined> {
    return this.#parts.estimates.of(job)
  }

  /**
   * Why a queued job does not start, other than the jobs before it; slightly delayed. `undefined`: no such reason, or
   * the job is not waiting.
   */
  waiting(job: JobRecord): Promise<Waiting | undefined> {
    return waitingOf(job, this.#parts)
  }

  /** The number of attempts without progress after which the job ends FAILED, by the policy of its workflow. */
  maxAttempts({ workflow }: Pick<JobRecord, 'workflow'>): number {
    return policyOf(workflow, this.workflows.get(workflow)?.policy, this.options).maxAttempts
  }

  /** Whether a job runs in this process; other STARTED jobs run in another. */
  isRunningHere(id: string): boolean {
    return this.#parts.dispatcher.isRunning(id)
  }

  /**
   * The part already written of a result of a job that runs in this process. It can be read while it grows; its bytes
   * equal the final result's except for the lengths in the header. `undefined`: there is no such file here.
   */
  growingResult(
    job: JobRecord,
    output: string,
    { ofPeaks = false }: { ofPeaks?: boolean } = {},
  ): Promise<GrowingResult | undefined> {
    return growingResult(job, output, this.#parts, ofPeaks)
  }

  /**
   * Peaks of an audio result as JSON (audiowaveform, version 2), measured at the first call and stored next to the
   * result. `undefined`: no such file, or no `peaks` part.
   *
   * @throws StemworkError `BAD_INPUT` for a result that is not audio; the signal's reason.
   */
  peaks(job: JobRecord, output: string, options: { signal?: AbortSignal } = {}): Promise<string | undefined> {
    return this.#parts.peaks(job, output, options.signal)
  }

  /** Bytes of the result files that an application's jobs keep in the blob store. */
  resultBytes(app: string): Promise<number> {
    return this.#parts.jobs.resultBytes(app)
  }

  /** Approximate bytes that the records of an application's jobs take in the job store. */
  recordBytes(app: string): Promise<number> {
    return this.#parts.jobs.recordBytes(app)
  }

  /**
   * Approximate bytes of an application's batches and failing webhook receivers. All are read, a few at a time, each
   * read run by `turn`. Default: with pauses for other work.
   */
  async documentBytes(app: string, { turn }: { turn?: Turn } = {}): Promise<number> {
    const { batches, sender } = this.#parts
    return (await batches.bytes(app, turn)) + (await sender.receivers.bytes(app, turn))
  }

  /** Today's usage of the application, which counts against its quota. */
  usage(app: string): Promise<Usage> {
    return usageOf(app, this.#parts)
  }

  /**
   * Total usage of the jobs that ended in these UTC days, by `day`, `app` and `workflow` as `groupBy` says; kept for
   * `retention.usageMs`, even after the jobs are removed.
   *
   * @example await engine.usageTotals({ from: Date.parse('2026-11-01'), to: Date.now(), groupBy: ['app'] })
   * @throws StemworkError `INVALID_PARAMS`; `NOT_FOUND` for a store without a ledger.
   */
  usageTotals(query: UsageTotalsQuery): Promise<LedgerTotal[]> {
    return usageTotals(this.#parts.jobs, query)
  }

  /**
   * Ledger entries of the jobs that ended in these UTC days, in the order of their ends; continue with
   * `after: entries.at(-1)`.
   *
   * @throws StemworkError as `usageTotals` does.
   */
  usageEntries(query: UsageEntriesQuery): Promise<LedgerEntry[]> {
    return usageEntries(this.#parts.jobs, query)
  }

  /** An application's own limits, the limits in effect, and today's usage. */
  limits(app: string): Promise<ApplicationLimits> {
    return limitsOf(app, { ...this.#parts })
  }

  /** The rules for applications, workflows and the deployment that differ from the default. */
  schedulingRules(): Promise<SchedulingRule[]> {
    return this.#parts.jobs.rules()
  }

  /**
   * The live workers, as they report themselves: every engine started on this store. A dead worker stays listed for up
   * to three leases.
   */
  workers(): Promise<Worker[]> {
    return this.#parts.workers.workers()
  }

  /** Waiting and running jobs by workflow and required labels, and the workers that can take them; slightly delayed. */
  pools(): Promise<PoolStatus[]> {
    return this.#parts.workers.pools()
  }

  /**
   * The workflows that lack a package, a program or a model in this process, by id with the reason. This process takes
   * none of their jobs; if no other process can, `submit` throws `WORKFLOW_UNAVAILABLE`. The check is repeated every
   * 30 s.
   */
  unavailableWorkflows(): ReadonlyMap<string, string> {
    return this.#parts.readiness.unavailable()
  }

  /**
   * The failing webhook receivers of an application; a receiver is an origin. After five failures in a row its messages
   * wait and are tried one at a time; after `webhooks.disableAfterMs` they are given up.
   */
  failingReceivers(app: string): Promise<FailingReceiver[]> {
    return this.#parts.sender.receivers.list(app)
  }
}
