import { z } from 'zod'
import type { JobError } from '../job/job.js'

/** Whether another attempt may succeed after this failure. */
export type RetryOn = (failure: JobError) => boolean

const milliseconds = z.number().int().nonnegative()
/** Node's timers are limited to 31 bits. */
export const longestTimerMs = 2 ** 31 - 1

export const workflowPolicySchema = z.strictObject({
  maxAttempts: z.number().int().positive().optional(),
  retryDelayMs: milliseconds.optional(),
  maxRetryDelayMs: milliseconds.optional(),
  retryJitter: z.number().min(0).max(1).optional(),
  timeoutMs: milliseconds.positive().max(longestTimerMs).optional(),
  retryOn: z
    .union([
      z.array(z.string().min(1)).readonly(),
      z.custom<RetryOn>((value) => typeof value === 'function', 'must be a list of codes and reasons, or a function'),
    ])
    .optional(),
})

/**
 * How a workflow's jobs are run and retried. Omitted values are the defaults for all workflows (`dispatch` and `limits`
 * of the engine).
 */
export interface WorkflowPolicy {
  /** Attempts before a job with a temporary failure ends FAILED. Default: `dispatch.maxAttempts`. */
  maxAttempts?: number
  /** Wait before the second attempt, in milliseconds; doubles with each one. Default: `dispatch.retryDelayMs`. */
  retryDelayMs?: number
  /** Longest wait, in milliseconds. Default: `dispatch.maxRetryDelayMs`. */
  maxRetryDelayMs?: number
  /** Largest share, 0 to 1, by which a wait is extended at random. Default: `dispatch.retryJitter`. */
  retryJitter?: number
  /** Longest run of one attempt, in milliseconds. Default: `limits.jobTimeoutMs`. */
  timeoutMs?: number
  /**
   * Which failures are retried: codes and reasons (`['worker_lost', 'TIMEOUT']`), or a function. Jobs that were
   * canceled or missed their deadline are never retried. Default: failures marked `retryable`.
   */
  retryOn?: readonly string[] | RetryOn
}
