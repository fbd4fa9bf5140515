import { attemptPrefix } from '../../job/blob-keys.js'
import { canceled, jobError } from '../../job/failure.js'
import type { JobRecord } from '../../job/job.js'
import { isWorthKeeping } from '../../job/retry.js'
import type { JobChange } from '../../job/transitions.js'
import { webhookMessages } from '../../webhooks/webhook-message.js'
import { longestTimerMs } from '../../workflow/policy.js'
import type { AttemptCheckpoint } from './attempt-checkpoint.js'
import { type EndPatience, writeEnd } from './attempt-end.js'
import type { AttemptLog } from './attempt-log.js'
import type { AttemptPorts } from './attempt-ports.js'
import type { Stages } from './stages.js'

/** Timers and clocks may be a few milliseconds early, and a notification that precedes the due time finds no job. */
const timerSlackMs = 25

interface EndedAttempt extends Omit<EndPatience, 'onRetry'> {
  job: JobRecord
  checkpoint: AttemptCheckpoint
  stages: Stages | undefined
  log: AttemptLog
}

/** Settles an attempt: one write that ends it, then events, cleanup and notifications. */
export function settlement(ports: AttemptPorts, { job, checkpoint, stages, outageMs, answeredAt, log }: EndedAttempt) {
  const { events, onEnd, waking, options } = ports

  const write = (change: JobChange): Promise<JobRecord | undefined> => {
    const onRetry = (error: unknown) => log.warn('The end of the job could not be written; trying again.', error)
    const end = () => writeEnd(ports.jobs, job, change, { outageMs, answeredAt, onRetry })
    return stages ? stages.end(end) : end()
  }

  const cancel = async (queued: JobRecord): Promise<JobRecord> => {
    const { failedInputsMs: retentionMs } = options.retention
    const messages = webhookMessages(queued, 'job.failed')
    return (await write({ kind: 'cancel', error: jobError(canceled()), retentionMs, messages })) ?? queued
  }

  /** Removes the files that the attempt has published. */
  const discardResults = async (): Promise<void> => {
    await ports.blobs
      .deletePrefix(attemptPrefix(job), { app: job.app })
      .catch((error: unknown) => log.warn('Discarded results could not be removed; the sweep will do it.', error))
  }

  /**
   * @param change absent: the lease was lost
   * @returns the record as written; `undefined` if the claim is no longer the current one
   * @throws the store's error, if it stays unavailable
   */
  const settle = async (change: JobChange | undefined): Promise<JobRecord | undefined> => {
    const written = change && (await write(change))
    if (!written) {
      await discardResults()
      return undefined
    }
    // This worker acts on the cancel, because another might not claim the queued job for a long time.
    const settled = written.status === 'QUEUED' && written.cancelRequested ? await cancel(written) : written
    switch (settled.status) {
      case 'SUCCEEDED':
        await checkpoint.discard()
        onEnd(settled)
        events.announce('job.succeeded', { job: settled })
        return settled
      case 'FAILED':
        if (!isWorthKeeping(settled.error)) await checkpoint.discard()
        onEnd(settled)
        events.announce('job.failed', { job: settled })
        return settled
      case 'QUEUED':
        events.announce('job.requeued', { job: settled })
        if (change.kind === 'preempt') events.announce('job.preempted', { job: settled })
        await waking.wake([settled], { delayMs: delayOf(change, settled) })
        return settled
      case 'STARTED':
        return settled
      default:
        return settled.status satisfies never
    }
  }

  return { settle, discardResults }
}

/** Delay of the notification for a queued job. A sweep finds jobs that wait longer. */
function delayOf(change: JobChange, { dueAt, history }: JobRecord): number {
  if (change.kind !== 'requeue' && change.kind !== 'suspend') return 0
  // Both times are by the store's clock.
  const waitMs = change.kind === 'requeue' ? change.delayMs : (dueAt ?? 0) - (history.at(-1)?.endedAt ?? 0)
  return Math.min(Math.max(0, waitMs) + timerSlackMs, longestTimerMs)
}
