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
  /** How long the run continues while the store does not answer. */
  storageOutageMs: number
  contact: Pick<StoreContact, 'noteAnswer' | 'noteFailure'>
  /** Usage of the attempt so far, in case the job is deleted. */
  used(): Used
  onProgress(job: JobRecord): void
  /** Ends the run. */
  interrupt(reason: StemworkError): void
  logger: Logger
}

export type HeartbeatLoop = ReturnType<typeof heartbeatLoop>

/**
 * Keeps a lease alive while its job runs. One call to the store sends the renewal and the progress and returns a
 * request to cancel. Interrupts the run when the job is canceled or the lease is lost. While the store does not answer,
 * the run continues: if no other worker reached the store either, the lease is renewed afterwards. The run ends only
 * after an outage so long that another worker takes over the job at once.
 */
export function heartbeatLoop(jobs: JobStore, job: JobRecord, options: HeartbeatOptions) {
  const { leaseMs, progressIntervalMs, storageOutageMs, contact, used, onProgress, interrupt, logger } = options
  const tickMs = Math.min(progressIntervalMs, leaseMs / 3)
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  let latest: WorkProgress = { stage: '', progress: 0 }
  let isUnwritten = false
  let hasKept = false
  let renewedAt = performance.now()
  /** Calls in flight, and the time of the last one. */
  let asking = 0
  let lastAskedAt = 0
  return { report, noteKept, start, stop }

  function report(progress: WorkProgress): void {
    latest = progress
    isUnwritten = true
  }

  /** Notes that work was kept, which no attempt repeats: the next heartbeat reports it. */
  function noteKept(): void {
    hasKept = true
    isUnwritten = true
  }

  function start(): void {
    timer = setTimeout(tick, tickMs).unref()
  }

  function stop(): void {
    isStopped = true
    clearTimeout(timer)
  }

  function tick(): void {
    const now = performance.now()
    if (now - renewedAt >= leaseMs + storageOutageMs) return interrupt(leaseLost())
    const isDue = isUnwritten || now - renewedAt >= leaseMs / 3 - tickMs / 2
    // A call may hang on its connection for longer than the outage, so the next call does not wait for it.
    const isAsking = asking > 0 && now - lastAskedAt < leaseMs / 3
    if (isDue && !isAsking) void beat()
    start()
  }

  async function beat(): Promise<void> {
    const { stage, progress } = latest
    const kept = hasKept
    isUnwritten = false
    hasKept = false
    const askedAt = performance.now()
    lastAskedAt = askedAt
    asking++
    try {
      const renewed = await jobs.apply(job.id, {
        kind: 'heartbeat',
        token: job.token,
        nonce: job.lease?.nonce,
        leaseMs,
        progress,
        stage: stage || null,
        used: used(),
        ...(kept ? { kept } : {}),
      })
      contact.noteAnswer()
      if (isStopped) return
      if (!renewed) return interrupt(leaseLost())
      renewedAt = Math.max(renewedAt, askedAt)
      onProgress(renewed)
      if (renewed.cancelRequested) interrupt(canceled())
    } catch (error) {
      contact.noteFailure()
      isUnwritten = true
      hasKept ||= kept
      logger.warn({ jobId: job.id, err: error }, 'A heartbeat did not reach the job store.')
    } finally {
      asking--
    }
  }
}

export function leaseLost(): StemworkError {
  const message = 'Another worker has taken over the job, or it was deleted; this run was stopped.'
  return new StemworkError('LEASE_LOST', message, { retryable: true })
}
