import { jobResultsPrefix } from '../../job/blob-keys.js'
import { jobCheckpointPrefix } from '../../job/checkpoint-keys.js'
import { canceled, jobError, missedDeadline } from '../../job/failure.js'
import type { JobRecord } from '../../job/job.js'
import { dayOf } from '../../job/quota.js'
import { JobLinks } from '../../links/job-links.js'
import { readSlices } from '../../queries/job-slices.js'
import { webhookMessages } from '../../webhooks/webhook-message.js'
import type { StoreContact } from '../store-contact.js'
import { removeUploads } from './uploads.js'
import type { SharedParts } from '../../engine-parts.js'

export interface SweepPorts extends Pick<SharedParts, 'events' | 'jobs' | 'clock' | 'blobs' | 'options' | 'logger'> {
  /** Called with each job that the sweep ended. */
  onEnd(job: JobRecord): void
  contact: StoreContact
}

/** Numbers of jobs and files that one sweep handled. */
export interface SweepReport {
  deleted: number
  expired: number
  /** Jobs ended while no worker ran them: their deadlines had passed, or they were canceled and their worker lost. */
  missed: number
  purged: number
  uploads: number
  orphans: number
}

type SweepReason = 'deleted' | 'expired' | 'overdue' | 'abandoned'

/** Most jobs that one sweep handles for one reason; if there may be more, the next sweep follows at once. */
export const mostPerSweep = 100
/** When failures of a step have taken this long, a store is probably unavailable: the next sweep does the rest. */
const mostLostMs = 30_000
/** Tolerance for jobs that were created after the clock was read. */
const leastAheadMs = 1000
/** Sweeps per removal of old ledger entries, which are kept by days. */
const ledgerRounds = 20

export type Sweep = ReturnType<typeof jobSweep>

/**
 * Finishes what a crash left undone and removes expired results and records. Every step may be repeated, interrupted,
 * or run by several processes at once.
 */
export function jobSweep(ports: SweepPorts) {
  const { jobs, blobs, clock, contact, events, options, logger, onEnd } = ports
  /** Jobs for which a step failed: they are handled after all others. */
  const failures: Record<SweepReason, Set<string>> = {
    deleted: new Set(),
    expired: new Set(),
    overdue: new Set(),
    abandoned: new Set(),
  }
  let round = 0
  return { run, endUnheld }

  async function run(): Promise<Pick<SweepReport, 'deleted' | 'expired' | 'missed' | 'purged'>> {
    const deleted = await each('deleted', (job) => finishDeletion(job, ports))
    const expired = await each('expired', async (job) => {
      await blobs.deletePrefix(jobResultsPrefix(job.id), { app: job.app })
      await jobs.apply(job.id, { kind: 'expire' })
    })
    const missed = (await endUnheldJobs('overdue')) + (await endUnheldJobs('abandoned'))
    await step('lapsed', releaseLapsed)
    await step('ahead', hastenAhead)
    const purged = await step('purged', purgeOldJobs)
    await step('documents', removeExpiredDocuments)
    if (round++ % ledgerRounds === 0) await step('usage', tidyLedger)
    return { deleted, expired, missed, purged }
  }

  async function step(name: string, work: () => Promise<number | void>): Promise<number> {
    try {
      return (await work()) ?? 0
    } catch (error) {
      logger.warn({ step: name, err: error }, 'A step of the sweep failed; the next sweep repeats it.')
      return 0
    }
  }

  /**
   * Does the work for each due job; if it fails for a job, the next sweep handles that job after the others.
   *
   * @param work resolves with `false` if there was nothing to do
   * @returns the number of jobs for which it was done
   */
  function each(reason: SweepReason, work: (job: JobRecord) => Promise<boolean | void>): Promise<number> {
    return step(reason, async () => {
      const failed = failures[reason]
      const due = await jobs.due(reason, mostPerSweep + failed.size)
      const fresh = due.filter(({ id }) => !failed.has(id))
      const again = due.filter(({ id }) => failed.has(id))
      failed.clear()
      for (const { id } of again) failed.add(id)
      let done = 0
      let lostMs = 0
      for (const job of [...fresh, ...again]) {
        if (lostMs >= mostLostMs) break
        const beganAt = performance.now()
        try {
          if ((await work(job)) !== false) done++
          failed.delete(job.id)
        } catch (error) {
          failed.add(job.id)
          lostMs += performance.now() - beganAt
          logger.warn(
            { step: reason, jobId: job.id, err: error },
            'A step of the sweep failed for a job; the next sweep tries again.',
          )
        }
      }
      return done
    })
  }

  /** Ends all such jobs, even if no live worker could claim them. */
  async function endUnheldJobs(reason: 'overdue' | 'abandoned'): Promise<number> {
    const ended = await each(reason, async (due) => {
      // After an outage, a worker that has reconnected may still end the job itself.
      if (reason === 'abandoned' && due.lease !== null && due.lease.until > (await contact.lapsedBefore())) return false
      return (await endUnheld(due)) !== undefined
    })
    // A deadline is a promise, so the remaining jobs do not wait for the next sweep.
    return ended < mostPerSweep ? ended : ended + (await endUnheldJobs(reason))
  }

  /** Ends a job without a worker, if it was canceled or missed its deadline. `undefined`: it continues or has ended. */
  async function endUnheld(due: JobRecord): Promise<JobRecord | undefined> {
    const job = await jobs.apply(due.id, {
      ...(due.cancelRequested
        ? { kind: 'cancel', error: jobError(canceled()) }
        : { kind: 'miss', error: jobError(missedDeadline(due.deadline ?? 0)) }),
      retentionMs: options.retention.failedInputsMs,
      messages: webhookMessages(due, 'job.failed'),
    })
    if (!job) return undefined
    onEnd(job)
    events.announce('job.failed', { job })
    return job
  }

  /**
   * Requeues jobs of lost workers, which would count as running forever if no live worker took them over. By then, a
   * worker that is only disconnected has given up, too.
   */
  async function releaseLapsed(): Promise<void> {
    const lapsed = await jobs.due('lapsed', mostPerSweep)
    if (lapsed.length === 0) return
    const outageAgo = (await clock.time()) - options.dispatch.storageOutageMs
    const lapsedBefore = Math.min(outageAgo, await contact.lapsedBefore())
    for (const { id } of lapsed.filter(({ lease }) => (lease?.until ?? 0) <= lapsedBefore)) {
      const job = await jobs.apply(id, { kind: 'release', lapsedBefore })
      if (job) events.announce('job.requeued', { job })
    }
  }

  /** If the store's clock was ahead and has been set back, the jobs created meanwhile would wait for those times. */
  async function hastenAhead(): Promise<void> {
    const now = await clock.read()
    const [newest] = await jobs.list({ limit: 1 })
    const byMs = (newest?.createdAt ?? 0) - now
    if (byMs < leastAheadMs) return
    await readSlices(
      { statuses: ['QUEUED'], createdAfter: now, limit: Infinity },
      (page) => jobs.list(page),
      async (ahead) => {
        for (const { id, dueAt } of ahead) if (dueAt === null) await jobs.apply(id, { kind: 'hasten', byMs })
      },
    )
  }

  /** All of them: a service that creates many would keep more and more. */
  async function removeExpiredDocuments(): Promise<void> {
    while ((await jobs.documents.removeExpired(mostPerSweep)) >= mostPerSweep);
  }

  async function tidyLedger(): Promise<void> {
    const keepFromDay = dayOf((await clock.time()) - options.retention.usageMs)
    await jobs.ledger?.tidy({ keepFromDay })
  }

  async function purgeOldJobs(): Promise<number> {
    const endedBefore = (await clock.time()) - options.retention.jobsMs
    const purged = await jobs.purge({ endedBefore, limit: mostPerSweep })
    return purged.length
  }
}

/** Removes first the files, then the record, which still locates the files after an interruption. */
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
  await new JobLinks(ports.jobs.documents, ports.clock).revokeAll(job.id)
  await ports.jobs.purge({ id: job.id })
}
