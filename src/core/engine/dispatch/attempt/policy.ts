import { isTransient, jobError } from '../../job/failure.js'
import type { EngineOptions } from '../../options.js'
import type { WorkflowPolicy } from '../../workflow/policy.js'
import type { AttemptLog } from './attempt-log.js'

/** The policy for a job's attempts. */
export interface Policy {
  maxAttempts: number
  timeoutMs: number
  isRetried(error: unknown): boolean
  /** Milliseconds to wait after this number of attempts. */
  delayMs(attempts: number): number
}

/**
 * The only function that resolves a workflow's policy: the host's entry, then the definition, then the defaults.
 *
 * @param own policy of the definition
 */
export function policyOf(
  id: string,
  own: WorkflowPolicy | undefined,
  { policies, dispatch, limits }: Pick<EngineOptions, 'policies' | 'dispatch' | 'limits'>,
): Policy {
  const host = policies[id]
  const setting = <Name extends keyof WorkflowPolicy>(name: Name) => host?.[name] ?? own?.[name]
  const firstMs = setting('retryDelayMs') ?? dispatch.retryDelayMs
  const mostMs = setting('maxRetryDelayMs') ?? dispatch.maxRetryDelayMs
  const jitter = setting('retryJitter') ?? dispatch.retryJitter
  const retryOn = setting('retryOn')
  return {
    maxAttempts: setting('maxAttempts') ?? dispatch.maxAttempts,
    timeoutMs: setting('timeoutMs') ?? limits.jobTimeoutMs,
    isRetried(error) {
      const failure = jobError(error)
      if (failure.code === 'CANCELED' || failure.reason === 'deadline') return false
      if (retryOn === undefined) return isTransient(error)
      if (typeof retryOn === 'function') return retryOn(failure)
      return retryOn.includes(failure.code) || (failure.reason !== null && retryOn.includes(failure.reason))
    },
    // Minimum first: 2 ** attempts can overflow to Infinity.
    delayMs: (attempts) => Math.round(Math.min(mostMs, firstMs * 2 ** (attempts - 1)) * (1 + jitter * Math.random())),
  }
}

/** Makes a failure permanent if `retryOn` throws. */
export function withSafeRetryOn(policy: Policy, log: AttemptLog): Policy {
  const isRetried = (error: unknown) => {
    try {
      return policy.isRetried(error)
    } catch (thrown) {
      log.warn('`retryOn` of the policy threw; the failure counts as permanent.', thrown)
      return false
    }
  }
  return { ...policy, isRetried }
}
