import { setTimeout as delay } from 'node:timers/promises'
import type { JobOutput, JobRecord } from '../../job/job.js'
import type { HeldClaim, JobChange } from '../../job/transitions.js'
import { poolOf } from '../../job/pool.js'
import type { JobStore } from '../../ports/job-store.js'
import { webhookMessages } from '../../webhooks/webhook-message.js'
import { needsOf, type Workflow } from '../../workflow/workflow.js'
import { paramsOf } from './attempt-inputs.js'
import type { usageOf } from './attempt-usage.js'

type Usage = ReturnType<typeof usageOf>

/** Most consecutive outages for which one write waits. */
const mostOutages = 3

export interface EndPatience {
  /** How long an outage may last; called after each failed try. */
  outageMs(): number
  /** When the store last answered any call of this process, by `performance.now()`. */
  answeredAt(): number
  onRetry(error: unknown): void
}

/**
 * Writes the change that ends a claim. A store outage must not lose a finished job, so failed writes are repeated
 * before the store's error is thrown.
 *
 * @returns the record as written; `undefined` if the claim is no longer the current one
 */
export async function writeEnd(
  jobs: JobStore,
  job: JobRecord,
  change: JobChange,
  { outageMs, answeredAt, onRetry }: EndPatience,
): Promise<JobRecord | undefined> {
  const startedAt = performance.now()
  let mayBeWritten = false
  for (let waitMs = 50; ; waitMs = Math.min(waitMs * 2, 2000)) {
    try {
      const written = await jobs.apply(job.id, change)
      return written ?? (mayBeWritten ? await ownEnd(jobs, job) : undefined)
    } catch (error) {
      mayBeWritten = true
      const forMs = outageMs()
      // An answer since the start, for example to a heartbeat, means that this is another outage.
      const giveUpAt = Math.min(Math.max(startedAt, answeredAt()) + forMs, startedAt + mostOutages * forMs)
      if (performance.now() + waitMs > giveUpAt) throw error
      onRetry(error)
      await delay(waitMs)
    }
  }
}

/** The change that ends a job with its results. */
export function successOf(
  job: JobRecord,
  outputs: Record<string, JobOutput>,
  { details, usage, retentionMs }: { details: Record<string, unknown>; usage: Usage; retentionMs: number },
): JobChange {
  const messages = webhookMessages(job, 'job.succeeded')
  return { kind: 'succeed', ...claimOf(job), outputs, details, ...usage, retentionMs, messages }
}

/** The change that suspends a job until its waiting steps end, or for a worker with the labels that a step needs. */
export function suspensionOf(
  job: JobRecord,
  workflow: Workflow,
  { waitsFor, needs = [], processorSeconds }: { waitsFor: string[]; needs?: string[]; processorSeconds: number },
): JobChange {
  const pool = poolOf([...needsOf(workflow, paramsOf(workflow, job)), ...needs])
  return { kind: 'suspend', ...claimOf(job), waitsFor, pool, processorSeconds }
}

export function claimOf({ token, lease }: Pick<JobRecord, 'token' | 'lease'>): HeldClaim {
  return { token, nonce: lease?.nonce }
}

/** The record, if this claim is still the last and has ended: the write that seemed to fail was applied. */
async function ownEnd(jobs: JobStore, { id, token }: JobRecord): Promise<JobRecord | undefined> {
  const job = await jobs.get(id)
  return job && job.token === token && job.lease === null ? job : undefined
}
