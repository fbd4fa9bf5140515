import { withMessages, withTryBegun, withTryDeferred, withTryEnded } from './deliveries.js'
import { claimableFrom } from './due-times.js'
import { withAttempt, withEnd } from './history.js'
import { ledgerEntry, type Used } from './ledger.js'
import type { Quota, Usage } from './quota.js'
import { retried } from './retry.js'
import { type StepRecord, wakeTime, withEvent, withStep } from './step.js'
import type { Delivery, JobError, JobOutput, JobRecord } from './job.js'
import { isTerminal } from './job.js'

/**
 * The state machine, as pure functions from a record to the next one. They return `undefined` for a change that does
 * not apply to the record: nothing may be written.
 *
 *     QUEUED -> STARTED -> SUCCEEDED | FAILED
 *     STARTED -> QUEUED (another attempt, hand-back, preemption, loss)
 *     FAILED -> QUEUED (retry)
 *     any -> deleted
 *
 * So that there is only one state machine, every store applies exactly these functions, with the store's clock, to a
 * record that it holds exclusively (lock, transaction or compare-and-set).
 */
export type JobChange =
  /**
   * Renews the lease and reports progress. `kept`: work was kept that no later attempt repeats, so the counts of
   * attempts and lapses restart.
   */
  | ({
      kind: 'heartbeat'
      leaseMs: number
      progress: number
      stage: string | null
      kept?: boolean
      used?: Used
    } & HeldClaim)
  /** Ends the claim with results. */
  | ({ kind: 'succeed'; outputs: Record<string, JobOutput>; details: Record<string, unknown> } & EndedRun)
  /** Ends the claim, and the job, with an error. `failure`: for the operator alone. */
  | ({ kind: 'fail'; error: JobError; failure?: string } & EndedRun)
  /** Ends the claim and requeues the job, due in `delayMs`. `onShutdown`: the attempt does not count. */
  | ({ kind: 'requeue'; delayMs: number; onShutdown: boolean; failure?: string } & EndedAttempt)
  /** Keeps the state of a step, and renews the lease. A finished step never repeats. `waitMs`: until its wait ends. */
  | ({ kind: 'step'; leaseMs: number; step: StepRecord; waitMs?: number } & HeldClaim)
  /**
   * Ends the claim until one of these waiting steps ends; without any, the job is due at once. The claim does not count
   * as an attempt. `pool`: labels that the next worker must have. Default: unchanged.
   */
  | ({ kind: 'suspend'; waitsFor: readonly string[]; pool?: string } & EndedAttempt)
  /** Delivers an event to the step that waits for it, or will wait for it later. */
  | { kind: 'event'; name: string; value: unknown }
  /**
   * Ends the claim and queues the job again, in favour of another application's job. The claim does not count as an
   * attempt, and the job keeps its place.
   */
  | ({ kind: 'preempt' } & EndedAttempt)
  /**
   * Ends a job that no worker runs: a queued one, or one with an expired lease. Asks a running job to stop, which its
   * worker learns at the next heartbeat. `force` ends running jobs, too, and deletes the job. The store counts `usage`
   * in the same write.
   */
  | ({ kind: 'cancel'; error: JobError; force?: boolean; usage?: Partial<Usage> } & EndedJob)
  /** Ends a job that no worker runs, as `cancel` does, if its deadline has passed. */
  | ({ kind: 'miss'; error: JobError } & EndedJob)
  /** Queues a job whose lease ended by `lapsedBefore`, and counts a lapse, so that it no longer counts as running. */
  | { kind: 'release'; lapsedBefore: number }
  /**
   * Queues a FAILED job again, as if it were new. It counts as a new job against `maxQueued` and the quota, which the
   * store checks in the same operation: `apply` throws `QUEUE_FULL` and `QUOTA_EXCEEDED`, as `create` does.
   */
  | { kind: 'retry'; maxQueued?: number; quota?: Quota }
  /** Makes a job due that was created before the clock was set back by `byMs`, and would wait for its creation time. */
  | { kind: 'hasten'; byMs: number }
  /** Hides the job permanently and fences off its worker. */
  | { kind: 'delete' }
  /** Records that retention removed the result files. */
  | { kind: 'expire' }
  /**
   * Claims the next attempt at a webhook message: only one of several processes has the current count of attempts. The
   * following attempt is due in `retryInMs`, even if the process dies during this one; null: there is none.
   */
  | { kind: 'beginDelivery'; deliveryId: string; attempts: number; retryInMs: number | null }
  /** Postpones the next attempt, without counting one, because the receiver must not be contacted now. */
  | { kind: 'deferDelivery'; deliveryId: string; delayMs: number }
  /** Records the outcome of an attempt at a webhook message; `pending`: another attempt follows. */
  | { kind: 'endDelivery'; deliveryId: string; outcome: Delivery['outcome']; status: number | null }

/**
 * The claim whose holder makes a change. The change applies only while this claim is the current one. The nonce
 * distinguishes it from another claim with the same token, which a database that lost its last commits may grant.
 */
export interface HeldClaim {
  token: number
  /** The nonce given with the claim. Default: none. */
  nonce?: string
}

/** The claim of an attempt that has ended before its job has. */
export interface EndedAttempt extends HeldClaim {
  /** Processor time of the attempt. Default: 0 */
  processorSeconds?: number
}

/** Consequences of the end of a job. */
export interface EndedJob {
  retentionMs: number
  messages: readonly WebhookMessage[]
}

/** The end of a job by the worker that ran it. */
export interface EndedRun extends HeldClaim, EndedJob {
  /** Usage that the store adds to the application's day in the same write. */
  usage?: Partial<Usage>
  /** For the usage ledger. */
  used?: Partial<Used>
}

/** A webhook message that a change puts into the job's outbox, in the same write. */
export interface WebhookMessage {
  id: string
  url: string
  event: string
}

export interface ClaimRequest {
  /** Name of the claiming worker, for operators. */
  owner: string
  leaseMs: number
  /** Text unique to this claim, without "/"; part of the keys of its files (`attemptPrefix`). Default: none. */
  nonce?: string
  /** A lease that ended later than this, by the store's clock, counts as held. Default: no such grace. */
  lapsedBefore?: number
}

/**
 * Whether `job` may be claimed at `now`: queued and due, or started under a lease that has expired.
 *
 * @param lapsedBefore as in a claim
 */
export function isClaimable(job: JobRecord, now: number, lapsedBefore = now): boolean {
  if (job.deleted || isTerminal(job)) return false
  return job.status === 'QUEUED' ? claimableFrom(job) <= now : isLapsed(job, Math.min(now, lapsedBefore))
}

/** Whether no worker runs the started job any more. */
function isLapsed({ lease }: JobRecord, now: number): boolean {
  return lease === null || lease.until <= now
}

/**
 * Grants the next fencing token. Counts the attempt, or the lapse before it, now, so an input that kills its process
 * cannot loop.
 */
export function claim(job: JobRecord, request: ClaimRequest, now: number): JobRecord | undefined {
  if (!isClaimable(job, now, request.lapsedBefore)) return undefined
  const token = job.token + 1
  const isLapsed = job.status === 'STARTED'
  return {
    ...withUse(job, job.lease?.used ?? {}),
    status: 'STARTED',
    startedAt: job.startedAt ?? now,
    progress: lastingProgress(job),
    stage: null,
    token,
    lease: { owner: request.owner, token, nonce: request.nonce ?? '', until: now + request.leaseMs },
    attempts: isLapsed ? job.attempts : job.attempts + 1,
    lapses: isLapsed ? job.lapses + 1 : job.lapses,
    history: withAttempt(job.history, { token, worker: request.owner, startedAt: now }, job.lease?.until ?? now),
  }
}

// oxlint-disable-next-line complexity, max-lines-per-function -- a state machine, one case for each change
export function transition(job: JobRecord, change: JobChange, now: number): JobRecord | undefined {
  if ('token' in change && !isHeld(job, change)) return undefined
  switch (change.kind) {
    case 'heartbeat': {
      const { progress, stage, kept, used } = change
      const held = renewed(job, now + change.leaseMs, { kept, used })
      const highest = Math.max(job.progress, progress)
      return { ...held, progress: highest, keptProgress: kept ? highest : job.keptProgress, stage }
    }
    case 'succeed':
      return settled(change.used, {
        ...ended(job, now, change),
        status: 'SUCCEEDED',
        progress: 1,
        failure: null,
        history: withEnd(job.history, now, 'succeeded'),
        steps: job.steps.map(({ valueKey: _removed, ...step }) => ({ ...step, value: null })),
        outputs: change.outputs,
        details: change.details,
      })
    case 'fail':
      return settled(change.used, {
        ...ended(job, now, change),
        status: 'FAILED',
        error: change.error,
        failure: change.failure ?? job.failure,
        history: withEnd(job.history, now, 'failed', change.failure ?? change.error.message),
      })
    case 'requeue':
      return {
        ...withUse(released(job), change),
        dueAt: now + change.delayMs,
        failure: change.failure ?? job.failure,
        attempts: change.onShutdown ? job.attempts - 1 : job.attempts,
        shutdownRequeues: change.onShutdown ? job.shutdownRequeues + 1 : job.shutdownRequeues,
        history: withEnd(job.history, now, change.failure === undefined ? 'handed_back' : 'requeued', change.failure),
      }
    case 'preempt':
      return {
        ...withUse(released(job), change),
        attempts: Math.max(0, job.attempts - 1),
        history: withEnd(job.history, now, 'preempted'),
      }
    case 'step': {
      const { leaseMs, waitMs } = change
      const step = waitMs === undefined ? change.step : { ...change.step, until: now + waitMs }
      return { ...renewed(job, now + leaseMs, { kept: step.state === 'done' }), steps: withStep(job.steps, step) }
    }
    case 'suspend':
      return {
        ...withUse(job, change),
        status: 'QUEUED',
        lease: null,
        stage: null,
        pool: change.pool ?? job.pool,
        dueAt: job.cancelRequested ? now : wakeTime(job.steps, change.waitsFor, now),
        attempts: 0,
        history: withEnd(job.history, now, 'suspended'),
      }
    case 'event': {
      const steps = job.deleted || isTerminal(job) ? undefined : withEvent(job.steps, change.name, change.value, now)
      if (!steps) return undefined
      const isAwaited = job.status === 'QUEUED' && job.steps.some(({ name }) => name === change.name)
      return { ...job, steps, dueAt: isAwaited ? now : job.dueAt }
    }
    case 'cancel': {
      if (job.deleted || isTerminal(job)) return undefined
      // A job that never ran has no usage to record.
      if (change.force && job.startedAt === null) return deleted(job)
      const next = endedUnheld(job, now, change) ?? { ...job, cancelRequested: true }
      return change.force ? deleted(next) : next
    }
    case 'miss':
      if (job.deleted || isTerminal(job) || job.deadline === null || job.deadline > now) return undefined
      return endedUnheld(job, now, change)
    case 'release':
      // A job that will be canceled needs no worker.
      if (job.deleted || job.cancelRequested || job.status !== 'STARTED') return undefined
      if (!isLapsed(job, Math.min(now, change.lapsedBefore))) return undefined
      return {
        ...withUse(released(job), job.lease?.used ?? {}),
        attempts: Math.max(0, job.attempts - 1),
        lapses: job.lapses + 1,
        history: withEnd(job.history, job.lease?.until ?? now, 'lapsed'),
      }
    case 'retry':
      if (job.deleted || job.status !== 'FAILED' || (job.deadline !== null && job.deadline <= now)) return undefined
      return { ...retried(job, now), metered: job.metered || change.quota !== undefined }
    case 'hasten':
      if (job.deleted || job.status !== 'QUEUED' || job.dueAt !== null || job.createdAt <= now) return undefined
      return { ...job, dueAt: Math.min(now, job.createdAt - change.byMs) }
    case 'delete':
      return job.deleted ? undefined : deleted(job)
    case 'expire':
      if (job.deleted || !isTerminal(job) || job.expired) return undefined
      return { ...job, expired: true }
    case 'beginDelivery':
      return withTryBegun(job, change, now)
    case 'deferDelivery':
      return withTryDeferred(job, change, now)
    case 'endDelivery':
      return withTryEnded(job, change)
    default:
      return change satisfies never
  }
}

function isHeld(job: JobRecord, { token, nonce = '' }: HeldClaim): boolean {
  return !job.deleted && job.status === 'STARTED' && job.lease?.token === token && job.lease.nonce === nonce
}

/** @param kept whether work was kept that no later attempt repeats */
function renewed(job: JobRecord, until: number, { kept = false, used }: { kept?: boolean; used?: Used }): JobRecord {
  const counts = kept ? { attempts: Math.min(job.attempts, 1), lapses: 0 } : {}
  return { ...job, ...counts, lease: job.lease && { ...job.lease, until, ...(used && { used }) } }
}

/** Adds the usage of an attempt to the record; the ledger counts it when the job ends. */
function withUse(job: JobRecord, { processorSeconds = 0 }: Pick<EndedAttempt, 'processorSeconds'>): JobRecord {
  return { ...job, processorSeconds: job.processorSeconds + processorSeconds }
}

/** Queues the job without a lease. */
function released(job: JobRecord): JobRecord {
  return { ...job, status: 'QUEUED', lease: null, progress: lastingProgress(job), stage: null }
}

/** Progress that a new attempt starts with: finished steps and kept work are not repeated. */
function lastingProgress({ steps, progress, keptProgress }: JobRecord): number {
  return steps.length > 0 ? progress : keptProgress
}

/** Increments the token, so that a heartbeat or late result of the current worker finds no lease. */
function deleted(job: JobRecord): JobRecord {
  return { ...job, deleted: true, lease: null, token: job.token + 1, idempotency: null }
}

type UnheldEnd = EndedJob & { error: JobError; force?: boolean }

/** Ends a job that no worker holds. `undefined`: a worker holds it, and its end is not forced. */
function endedUnheld(job: JobRecord, now: number, change: UnheldEnd): JobRecord | undefined {
  const { error, force } = change
  const isHeldByWorker = job.status === 'STARTED' && !isLapsed(job, now)
  if (isHeldByWorker && !force) return undefined
  const history = isHeldByWorker
    ? withEnd(job.history, now, 'failed', error.message)
    : withEnd(job.history, job.lease?.until ?? now, 'lapsed')
  return settled(job.lease?.used, { ...ended(job, now, change), status: 'FAILED', error, history })
}

/** Adds the ledger entry to the record of an ended job, however it ended. */
function settled(used: Partial<Used> | undefined, job: JobRecord): JobRecord {
  return { ...job, settlement: ledgerEntry(job, used) }
}

function ended(job: JobRecord, now: number, change: EndedJob): JobRecord {
  return {
    ...job,
    lease: null,
    stage: null,
    completedAt: now,
    expiresAt: now + change.retentionMs,
    deliveries: withMessages(job.deliveries, change.messages, now),
  }
}
