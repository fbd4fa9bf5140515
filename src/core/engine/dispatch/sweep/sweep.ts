import { jobResultsPrefix } from '../../job/blob-keys.js'
import type { JobEvents } from '../../events.js'
import { jobCheckpointPrefix } from '../../job/checkpoint-keys.js'
import { canceled, jobError, missedDeadline } from '../../job/failure.js'
import type { JobRecord } from '../../job/job.js'
import { dayOf } from '../../job/quota.js'
import type { EngineOptions } from '../../options.js'
import type { BlobStore } from '../../ports/blob-store.js'
import type { JobStore } from '../../ports/job-store.js'
import type { Logger } from '../../ports/logger.js'
import type { StoreClock } from '../../store-clock.js'
import { webhookMessages } from '../../webhooks/webhook-message.js'
import type { StoreContact } from '../store-contact.js'
import { removeUploads } from './uploads.js'

export interface SweepPorts {
  /** Called with each job that the sweep ended. */
  onEnd(job: JobRecord): void
  events: JobEvents
  jobs: JobStore
  clock: StoreClock
  contact: StoreContact
  blobs: BlobStore
  options: EngineOptions
  logger: Logger
}

/** What one sweep did. */
export interface SweepReport {
  deleted: number
  expired: number
  /** Ended while no worker ran them: their deadlines had passed, or they were canceled after their worker was lost. */
  missed: number
  purged: number
  uploads: number
  orphans: number
}

const batch = 100
/** Sweeps per tidying of the ledger, which is kept by days. */
const ledgerRounds = 20

/**
 * Finishes what a crash left undone and removes expired results and records. Every step may be repeated, interrupted,
 * or run by several processes at once.
 */
export class Sweep {
  readonly #ports: SweepPorts
  /** Jobs whose cleanup failed: they come after those that may succeed. */
  readonly #failed = { deleted: new Set<string>(), expired: new Set<string>() }

  #round = 0

  constructor(ports: SweepPorts) {
    this.#ports = ports
  }

  async run(): Promise<Pick<SweepReport, 'deleted' | 'expired' | 'missed' | 'purged'>> {
    const { jobs, blobs } = this.#ports
    const deleted = await this.#step('deleted', () => this.#clean('deleted', (job) => finishDeletion(job, this.#ports)))
    const expired = await this.#step('expired', () =>
      this.#clean('expired', async (job) => {
        await blobs.deletePrefix(jobResultsPrefix(job.id), { app: job.app })
        await jobs.apply(job.id, { kind: 'expire' })
      }),
    )
    const missed =
      (await this.#step('missed', () => this.#endUnheldJobs('overdue'))) +
      (await this.#step('abandoned', () => this.#endUnheldJobs('abandoned')))
    await this.#step('lapsed', () => this.#releaseLapsed())
    const purged = await this.#step('purged', () => this.#purgeOldJobs())
    if (this.#round++ % ledgerRounds === 0) await this.#step('usage', () => this.#tidyLedger())
    return { deleted, expired, missed, purged }
  }

  async #step(step: string, work: () => Promise<number | void>): Promise<number> {
    try {
      return (await work()) ?? 0
    } catch (error) {
      this.#ports.logger.warn({ step, err: error }, 'A step of the sweep failed; the next sweep repeats it.')
      return 0
    }
  }

  /** Each job on its own; one that cannot be cleaned up is retried after the others. */
  async #clean(reason: 'deleted' | 'expired', clean: (job: JobRecord) => Promise<void>): Promise<number> {
    const failed = this.#failed[reason]
    const due = await this.#ports.jobs.due(reason, batch + failed.size)
    const fresh = due.filter(({ id }) => !failed.has(id))
    const again = due.filter(({ id }) => failed.has(id))
    failed.clear()
    let cleaned = 0
    for (const job of [...fresh, ...again]) {
      try {
        await clean(job)
        cleaned++
      } catch (error) {
        failed.add(job.id)
        this.#ports.logger.warn(
          { step: reason, jobId: job.id, err: error },
          'The files of a job could not be removed; the next sweep tries again.',
        )
      }
    }
    return cleaned
  }

  /** Works even if no live worker could claim them. */
  async #endUnheldJobs(reason: 'overdue' | 'abandoned'): Promise<number> {
    const { jobs, contact, events, onEnd, options } = this.#ports
    let missed = 0
    const found = await jobs.due(reason, batch)
    // After an outage, a worker that is back may still end the job itself.
    const lapsedBefore = found.length > 0 && reason === 'abandoned' ? await contact.lapsedBefore() : Infinity
    for (const due of found) {
      if (due.lease !== null && due.lease.until > lapsedBefore) continue
      const job = await jobs.apply(due.id, {
        ...(due.cancelRequested
          ? { kind: 'cancel', error: jobError(canceled()) }
          : { kind: 'miss', error: jobError(missedDeadline(due.deadline ?? 0)) }),
        retentionMs: options.retention.failedInputsMs,
        messages: webhookMessages(due, 'job.failed'),
      })
      // It started or ended meanwhile.
      if (!job) continue
      missed++
      onEnd(job)
      events.announce('job.failed', { job })
    }
    return missed
  }

  /**
   * With no live worker to take them over, jobs of lost workers would count as running forever. By then a worker that
   * is only cut off has given up, too.
   */
  async #releaseLapsed(): Promise<void> {
    const { jobs, clock, events, options } = this.#ports
    const lapsed = await jobs.due('lapsed', batch)
    if (lapsed.length === 0) return
    const lapsedBefore = (await clock.time()) - options.dispatch.storageOutageMs
    for (const { id } of lapsed.filter(({ lease }) => (lease?.until ?? 0) <= lapsedBefore)) {
      const job = await jobs.apply(id, { kind: 'release', lapsedBefore })
      if (job) events.announce('job.requeued', { job })
    }
  }

  async #tidyLedger(): Promise<void> {
    const { jobs, clock, options } = this.#ports
    const keepFromDay = dayOf((await clock.time()) - options.retention.usageMs)
    await jobs.ledger?.tidy({ keepFromDay })
  }

  async #purgeOldJobs(): Promise<number> {
    const { jobs, clock, options } = this.#ports
    const endedBefore = (await clock.time()) - options.retention.jobsMs
    const purged = await jobs.purge({ endedBefore, limit: batch })
    return purged.length
  }
}

/** Files first, then the record: after an interruption in between, the record is still there to find them. */
export async function finishDeletion(
  job: JobRecord,
  ports: Pick<SweepPorts, 'jobs' | 'blobs' | 'clock' | 'options'>,
): Promise<void> {
  const { app } = job
  await ports.blobs.deletePrefix(jobResultsPrefix(job.id), { app })
  // A success has already removed its checkpoint.
  if (job.startedAt !== null && job.status !== 'SUCCEEDED')
    await ports.blobs.deletePrefix(jobCheckpointPrefix(job.id), { app })
  await removeUploads(job, ports)
  await ports.jobs.purge({ id: job.id })
}
