import { errorText } from '../../job/error-text.js'
import { StemworkError } from '../../errors.js'
import { CrowdedOutError } from '../../fetch/deadline.js'
import { downloadFailed } from '../../fetch/fetch-failure.js'
import { canceled, jobError, lostEveryWorker, missedDeadline } from '../../job/failure.js'
import type { JobRecord } from '../../job/job.js'
import type { JobChange } from '../../job/transitions.js'
import type { EngineOptions } from '../../options.js'
import type { InputFile } from '../../ports/runner.js'
import { webhookMessages } from '../../webhooks/webhook-message.js'
import { claimOf } from './attempt-end.js'
import { usageOf } from './attempt-usage.js'
import { fullDisk } from './full-disk.js'
import type { Policy } from './policy.js'

interface FailedAttempt {
  job: JobRecord
  /** Attempts without progress, including this one. */
  attempts: number
  inputs: Readonly<Record<string, InputFile>>
  policy: Policy
  options: Pick<EngineOptions, 'dispatch' | 'retention'>
  /** Processor time of this attempt. */
  processorSeconds: number
}

/** The error for an attempt that must not begin, if any. @param claimedAt by the store's clock */
export function hindranceOf(
  { deadline, cancelRequested, lapses }: JobRecord,
  claimedAt: number,
  maxLapses: number,
): StemworkError | undefined {
  if (deadline !== null && deadline <= claimedAt) return missedDeadline(deadline)
  // Requested while an earlier worker, now lost, ran the job.
  if (cancelRequested) return canceled()
  return lapses > maxLapses ? lostEveryWorker(lapses) : undefined
}

/** The error for a download that loses its slot to others. Its job is queued again, without counting the attempt. */
export function crowdedOut(policy: EngineOptions['fetch']): StemworkError {
  const cause = new CrowdedOutError('others need the slot while the service fetches many inputs')
  return downloadFailed(cause, policy, { retryable: true })
}

function isCrowdedOut(error: unknown): boolean {
  return StemworkError.is(error) && error.cause instanceof CrowdedOutError
}

type FailureAnswer = Extract<JobChange, { kind: 'requeue' | 'preempt' | 'fail' }>

/** The change after a failure: another attempt, a hand-back or the end of the job; none after a lost lease. */
export function answerToFailure(
  error: unknown,
  { job, attempts, inputs, policy, options: { dispatch, retention }, processorSeconds }: FailedAttempt,
): FailureAnswer | undefined {
  if (StemworkError.is(error) && error.code === 'LEASE_LOST') return undefined
  const claim = { ...claimOf(job), processorSeconds }
  if (StemworkError.is(error) && error.code === 'PREEMPTED') return { kind: 'preempt', ...claim }
  const failure = errorText(error)
  // None of these failures is the job's fault, but they must not repeat forever: a runner may be closed while its
  // engine runs on, and a file may be too large for the disk.
  const mayHandBack = job.shutdownRequeues < dispatch.maxShutdownRequeues
  if (mayHandBack && StemworkError.is(error) && error.code === 'SHUTTING_DOWN')
    return { kind: 'requeue', ...claim, delayMs: 0, onShutdown: true }
  if (mayHandBack && (isCrowdedOut(error) || (fullDisk(error) && policy.isRetried(error))))
    return { kind: 'requeue', ...claim, delayMs: policy.delayMs(job.shutdownRequeues + 1), onShutdown: true, failure }
  if (attempts < policy.maxAttempts && policy.isRetried(error))
    return { kind: 'requeue', ...claim, delayMs: policy.delayMs(attempts), onShutdown: false, failure }
  return {
    kind: 'fail',
    ...claimOf(job),
    error: jobError(error),
    failure,
    ...usageOf(job, inputs, { processorSeconds }),
    retentionMs: retention.failedInputsMs,
    messages: webhookMessages(job, 'job.failed'),
  }
}
