import { StemworkError } from '../../errors.js'
import { canceled } from '../../job/failure.js'
import type { JobRecord } from '../../job/job.js'
import type { Logger } from '../../ports/logger.js'
import type { JobStore } from '../../ports/job-store.js'
import type { WorkProgress } from '../../ports/runner.js'

export interface HeartbeatOptions {
  leaseMs: number
  progressIntervalMs: number
  onProgress(job: JobRecord): void
  /** Ends the run. */
  interrupt(reason: StemworkError): void
}

/**
 * Keeps a lease alive while its job runs. One call to the store sends the renewal and the progress and returns a
 * request to cancel. Interrupts the run when the job is canceled or the lease is lost, or when the store was
 * unreachable for so long that the lease must have expired: another worker may hold the job by then.
 */
export class HeartbeatLoop {
  readonly #jobs: JobStore
  readonly #job: JobRecord
  readonly #options: HeartbeatOptions
  readonly #logger: Logger
  readonly #tickMs: number
  #timer: NodeJS.Timeout | undefined
  #stopped = false
  #progress: WorkProgress = { stage: '', progress: 0 }
  #unwritten = false
  #hasKept = false
  #renewedAt = performance.now()

  constructor(jobs: JobStore, job: JobRecord, options: HeartbeatOptions, logger: Logger) {
    this.#jobs = jobs
    this.#job = job
    this.#options = options
    this.#logger = logger
    this.#tickMs = Math.min(options.progressIntervalMs, options.leaseMs / 3)
  }

  report(progress: WorkProgress): void {
    this.#progress = progress
    this.#unwritten = true
  }

  /** Work was kept that no attempt repeats: the next beat reports it. */
  noteKept(): void {
    this.#hasKept = true
    this.#unwritten = true
  }

  start(): void {
    this.#timer = setTimeout(() => void this.#tick(), this.#tickMs)
    this.#timer.unref()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  async #tick(): Promise<void> {
    const sinceRenewalMs = performance.now() - this.#renewedAt
    if (this.#unwritten || sinceRenewalMs >= this.#options.leaseMs / 3 - this.#tickMs / 2)
      await this.#beat(sinceRenewalMs)
    if (!this.#stopped) this.start()
  }

  async #beat(sinceRenewalMs: number): Promise<void> {
    const { stage, progress } = this.#progress
    const kept = this.#hasKept
    this.#unwritten = false
    this.#hasKept = false
    const startedAt = performance.now()
    try {
      const job = await this.#jobs.apply(this.#job.id, {
        kind: 'heartbeat',
        token: this.#job.token,
        nonce: this.#job.lease?.nonce,
        leaseMs: this.#options.leaseMs,
        progress,
        stage: stage || null,
        ...(kept ? { kept } : {}),
      })
      if (this.#stopped) return
      if (!job) return this.#options.interrupt(leaseLost())
      this.#renewedAt = startedAt
      this.#options.onProgress(job)
      if (job.cancelRequested) this.#options.interrupt(canceled())
    } catch (error) {
      this.#unwritten = true
      this.#hasKept ||= kept
      this.#logger.warn({ jobId: this.#job.id, err: error }, 'A heartbeat did not reach the job store.')
      if (sinceRenewalMs >= this.#options.leaseMs) this.#options.interrupt(leaseLost())
    }
  }
}

export function leaseLost(): StemworkError {
  return new StemworkError(
    'LEASE_LOST',
    'Another worker has taken over the job, or it was deleted; this run was stopped.',
    { retryable: true },
  )
}
