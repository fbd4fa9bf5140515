import { internalError, isSetupError, notSetUp, StemworkError } from '../errors.js'
import type { JobError } from './job.js'

const titles: Record<JobError['code'], string> = {
  BAD_INPUT: 'The input cannot be processed',
  TIMEOUT: 'The job took too long',
  INTERNAL_ERROR: 'The service failed',
  CANCELED: 'The job was canceled',
}

/**
 * The part of an error that its job shows to the client. The text of errors that are not the library's own is hidden.
 */
export function jobError(error: unknown): JobError {
  if (isSetupError(error)) return jobError(notSetUp(error))
  if (!StemworkError.is(error) || !isJobCode(error.code)) return jobError(internalError(error))
  const { code, message, reason = null, retryable } = error
  return { code, title: titles[code], message, reason, retryable }
}

/**
 * Whether another attempt may succeed. Unknown errors may be temporary (a full disk, an unavailable store); errors of
 * the library say whether they are.
 */
export function isTransient(error: unknown): boolean {
  return StemworkError.is(error) ? error.retryable : true
}

/** The error of a job that has missed its deadline. */
export function missedDeadline(deadline: number): StemworkError {
  return new StemworkError(
    'TIMEOUT',
    `The job did not end before its deadline, ${new Date(deadline).toISOString()}. Submit it again with a later ` +
      'deadline or a higher priority.',
    { reason: 'deadline' },
  )
}

export function canceled(): StemworkError {
  return new StemworkError('CANCELED', 'The job was canceled on request.')
}

function isJobCode(code: string): code is JobError['code'] {
  return code in titles
}

export function lostEveryWorker(lapses: number): StemworkError {
  return new StemworkError(
    'INTERNAL_ERROR',
    `The processes that ran the job ended unexpectedly ${lapses} times. The file may be damaged in a way that the ` +
      'service cannot handle. Try another copy of it, or convert it to another format.',
    { reason: 'worker_lost' },
  )
}

export function timedOut(jobTimeoutMs: number): StemworkError {
  return new StemworkError(
    'TIMEOUT',
    `The job was stopped because it ran longer than ${Math.round(jobTimeoutMs / 1000)} s. Submit a shorter file, ` +
      'or ask the operator to raise the limit.',
  )
}
