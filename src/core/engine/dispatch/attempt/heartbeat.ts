import { StemworkError } from '../../errors.js'
import { canceled } from '../../job/failure.js'
import type { JobRecord } from '../../job/job.js'
import type { Used } from '../../job/ledger.js'
import type { Logger } from '../../ports/logger.js'
import type { JobStore } from '../../ports/job-store.js'
import type { WorkProgress } from '../../ports/runner.js'
import type { StoreContact } from '../store-contact.js'

export interface HeartbeatOptions {
  leaseMs: number
  progressIntervalMs: number
  /** How long the run goes on while the store does not answer. */
  storageOutageMs: number
  contact: Pick<StoreContact, 'noteAnswer' | 'noteFailure'>
  /** What the attempt has used so far, in case the job is deleted. */
  used(): Used
  onProgress(job: JobRecord): void
  /** Ends the run. */
  interrupt(reason: StemworkError): void
  logger: Logger
}

/**
 * Keeps a lease alive while its job runs. One call to the store sends the renewal and the progress and returns a
 * request to cancel. Interrupts the run when the job is canceled or the lease is lost. While the store does not answer,
 * the run goes on: if nobody else reached it either, the lease is renewed when it is back. The run ends only if the
 * outage was so long that another worker takes the job at once.
 */
export class HeartbeatLoop {
  readonly #jobs: JobStore
  readonly #job: JobRecord
  readonly #options: HeartbeatOptions
  readonly #tickMs: number
  #timer: NodeJS.Timeout | undefined
  #stopped = false
  #progress: WorkProgress = { stage: '', progress: 0 }
  #unwritten = false
  #hasKept = false
  #renewedAt = performance.now()
  /** Calls in flight, and when the last of them was made. */
  #asking = 0
  #askedAt = 0

  constructor(jobs: JobStore, job: JobRecord, options: HeartbeatOptions) {
    this.#jobs = jobs
    this.#job = job
    this.#options = options
    this.#tickMs = Math.min(options.progressIntervalMs, options.leaseMs / 3)
  }

  report(progress: WorkProgress): void {
    this.#progress = progress
    this.#unwritten = true
  }

  /** Work was kept that no attempt has to repeat: the next beat reports it. */
  noteKept(): void {
    this.#hasKept = true
    this.#unwritten = true
  }

  start(): void {
    this.#timer = setTimeout(() => this.#tick(), this.#tickMs)
    this.#timer.unref()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #tick(): void {
    const { leaseMs, storageOutageMs, interrupt } = this.#options
    const now = performance.now()
    if (now - this.#renewedAt >= leaseMs + storageOutageMs) return interrupt(leaseLost())
    const isDue = this.#unwritten || now - this.#renewedAt >= leaseMs / 3 - this.#tickMs / 2
    // A call may hang on its connection for longer than the outage lasts: the next one does not wait for it.
    const isAsking = this.#asking > 0 && now - this.#askedAt < leaseMs / 3
    if (isDue && !isAsking) void this.#beat()
    this.start()
  }

  async #beat(): Promise<void> {
    const { leaseMs, contact, used, onProgress, interrupt } = this.#options
    const { stage, progress } = this.#progress
    const kept = this.#hasKept
    this.#unwritten = false
    this.#hasKept = false
    const askedAt = performance.now()
    this.#askedAt = askedAt
    this.#asking++
    try {
      const job = await this.#jobs.apply(this.#job.id, {
        kind: 'heartbeat',
        token: this.#job.token,
        nonce: this.#job.lease?.nonce,
        leaseMs,
        progress,
        stage: stage || null,
        used: used(),
        ...(kept ? { kept } : {}),
      })
      contact.noteAnswer()
      if (this.#stopped) return
      if (!job) return interrupt(leaseLost())
      this.#renewedAt = Math.max(this.#renewedAt, askedAt)
      onProgress(job)
      if (job.cancelRequested) interrupt(canceled())
    } catch (error) {
      contact.noteFailure()
      this.#unwritten = true
      this.#hasKept ||= kept
      this.#options.logger.warn({ jobId: this.#job.id, err: error }, 'A heartbeat did not reach the job store.')
    } finally {
      this.#asking--
    }
  }
}

export function leaseLost(): StemworkError {
  const message = 'Another worker has taken over the job, or it was deleted; this run was stopped.'
  return new StemworkError('LEASE_LOST', message, { retryable: true })
}
