import { isOfBatch } from '../batch/batch.js'
import type { Batches } from '../batch/batches.js'
import type { Dispatcher } from './dispatcher.js'
import { leaseLost } from './attempt/heartbeat.js'
import type { Maintenance } from './maintenance.js'
import { finishDeletion } from './sweep/sweep.js'
import { jobCheckpointPrefix } from '../job/checkpoint-keys.js'
import { canceled, jobError } from '../job/failure.js'
import { isTerminal, type JobRecord } from '../job/job.js'
import { jobInScope, type JobScope } from '../queries/job-scope.js'
import { webhookMessages } from '../webhooks/webhook-message.js'
import type { WorkerRegistry } from '../workers/worker-registry.js'
import type { SharedParts } from '../engine-parts.js'

interface EndingParts extends Pick<SharedParts, 'jobs' | 'clock' | 'blobs' | 'events' | 'options' | 'logger'> {
  dispatcher: Dispatcher
  maintenance: Maintenance
  batches: Batches
  workers: WorkerRegistry
}

/** Ends jobs on request, and handles the end of every job. */
export function jobEnds(parts: EndingParts) {
  const { jobs, blobs, events, options, logger, dispatcher, maintenance, batches, workers } = parts
  return { cancel, delete: remove, report }

  /** See `JobEngine.cancel`. */
  async function cancel(id: string, scope: JobScope): Promise<JobRecord | undefined> {
    const known = await jobInScope(jobs, id, scope)
    if (!known) return undefined
    const job = await jobs.apply(id, {
      kind: 'cancel',
      error: jobError(canceled()),
      retentionMs: options.retention.failedInputsMs,
      messages: webhookMessages(known, 'job.failed'),
    })
    if (!job) return jobInScope(jobs, id, scope)
    if (job.status === 'FAILED') {
      await discardCheckpoint(job)
      report(job)
      events.announce('job.failed', { job })
    } else {
      dispatcher.interrupt(id, canceled())
    }
    return job
  }

  /** See `JobEngine.delete`. */
  async function remove(id: string, scope: JobScope): Promise<JobRecord | undefined> {
    const known = await jobInScope(jobs, id, scope)
    if (!known) return undefined
    const ended = isTerminal(known) ? undefined : await endForced(known)
    const job = ended ?? (await jobs.apply(id, { kind: 'delete' }))
    if (ended?.settlement) events.announce('usage.recorded', { entry: ended.settlement })
    if (!job) return undefined
    dispatcher.interrupt(id, leaseLost())
    try {
      await finishDeletion(job, parts)
    } catch (error) {
      logger.warn({ jobId: id, err: error }, 'The files of a deleted job could not be removed; the sweep will do it.')
    }
    events.announce('job.deleted', { job })
    lookAtBatch(job)
    return known
  }

  /** Deletes an open job; one that has started, even meanwhile, ends as canceled, so that its usage is recorded. */
  async function endForced({ id, metered, lease }: JobRecord): Promise<JobRecord | undefined> {
    const usage = metered && lease?.used ? { bytes: lease.used.bytes } : undefined
    const retentionMs = options.retention.failedInputsMs
    return await jobs.apply(id, {
      kind: 'cancel',
      error: jobError(canceled()),
      force: true,
      usage,
      retentionMs,
      messages: [],
    })
  }

  /** Handles the end of a job. Not an event listener: the host can remove those, and they may be slow or fail. */
  function report(job: JobRecord): void {
    if (job.settlement) events.announce('usage.recorded', { entry: job.settlement })
    if (job.status === 'SUCCEEDED') workers.noteSuccess(job)
    lookAtBatch(job)
    if (maintenance.isStarted && job.webhook) maintenance.sendWebhooksSoon()
  }

  /** Checks the batch of a job in the background; after a failure, a sweep does it. */
  function lookAtBatch(job: JobRecord): void {
    if (!isOfBatch(job)) return
    batches.look(job).then(
      () => void (maintenance.isStarted && maintenance.sendWebhooksSoon()),
      (error: unknown) =>
        logger.warn({ jobId: job.id, err: error }, 'The batch of a job could not be checked; a sweep will do it.'),
    )
  }

  async function discardCheckpoint({ id, app, startedAt }: JobRecord): Promise<void> {
    if (startedAt === null) return
    await blobs
      .deletePrefix(jobCheckpointPrefix(id), { app })
      .catch((error: unknown) =>
        logger.warn({ jobId: id, err: error }, 'A checkpoint could not be removed; the sweep will do it.'),
      )
  }
}
