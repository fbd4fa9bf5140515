import { claimableFrom, retryAt } from '../job/due-times.js'
import { preempted } from '../errors.js'
import { labelsOf } from '../job/pool.js'
import type { JobRecord } from '../job/job.js'
import type { RememberedRules } from '../limits/scheduling-rules.js'
import type { StoreClock } from '../store-clock.js'
import { serves } from '../workers/worker.js'
import type { WorkerRegistry } from '../workers/worker-registry.js'

/** Why a queued job does not start, other than the jobs before it. */
export interface Waiting {
  /**
   * `scheduled`: it is not due yet; `retrying`: its last attempt failed temporarily, and the next is due later
   * (`dueAt`); `paused`: an operator has paused it; `no_worker`: no live worker takes such jobs; `preempted`: it gave
   * way to another application's job.
   */
  reason: 'scheduled' | 'retrying' | 'paused' | 'no_worker' | 'preempted'
  message: string
}

/** Reports why a job does not start. `undefined`: it waits for its turn, or is not waiting. */
export async function waitingOf(
  job: JobRecord,
  { rules, workers, clock }: { rules: RememberedRules; workers: WorkerRegistry; clock: Pick<StoreClock, 'time'> },
): Promise<Waiting | undefined> {
  if (job.status !== 'QUEUED') return undefined
  const from = claimableFrom(job)
  if (from > (await clock.time())) {
    const time = new Date(from).toISOString()
    return from === retryAt(job)
      ? { reason: 'retrying', message: `Its last attempt failed, and it is tried again at ${time}.` }
      : { reason: 'scheduled', message: `It does not ${job.token === 0 ? 'start' : 'go on'} before ${time}.` }
  }
  if (await rules.isPaused(job))
    return { reason: 'paused', message: 'The operator has paused such jobs; they wait until the pause ends.' }
  const able = (await workers.recent()).some((worker) => serves(worker, job))
  if (!able)
    return { reason: 'no_worker', message: `${noWorkerText(job.workflow, labelsOf(job.pool))}; it waits for one.` }
  return job.history.at(-1)?.outcome === 'preempted' ? { reason: 'preempted', message: preempted().message } : undefined
}

export function noWorkerText(workflow: string, needs: readonly string[]): string {
  const labels = needs.length === 0 ? '' : ` with the labels ${needs.join(', ')}`
  return `No active worker accepts jobs of ${workflow}${labels}`
}
