import type { JobRecord } from '../../../core/engine/job/job.js'
import { servesPool } from '../../../core/engine/job/pool.js'
import { isHeldBack, type RuleTarget, type SchedulingRule } from '../../../core/engine/job/scheduling.js'
import type { Claimable } from '../../../core/engine/ports/job-store.js'

/** Conditions of a claim. */
export type Wanted = Omit<Claimable, 'id'>

/** Whether a job is of the applications, workflows and pools that a claim asks for. */
export function isWanted(
  { app, workflow, pool }: Pick<JobRecord, 'app' | 'workflow' | 'pool'>,
  { exceptApps, onlyApps, workflows, labels }: Wanted,
): boolean {
  return (
    !exceptApps?.includes(app) &&
    onlyApps?.includes(app) !== false &&
    workflows?.includes(workflow) !== false &&
    servesPool(labels, pool)
  )
}

/** Whether a claim asks for a job, and no rule holds it back. @param running how many jobs a target has */
export function mayBegin(
  job: Pick<JobRecord, 'app' | 'workflow' | 'pool' | 'status'>,
  wanted: Wanted & { rules: readonly SchedulingRule[] },
  running: (target: RuleTarget) => number,
): boolean {
  const { belowRunning, rules } = wanted
  if (!isWanted(job, wanted)) return false
  if (belowRunning !== undefined) {
    const others = running({ kind: 'application', id: job.app }) - (job.status === 'STARTED' ? 1 : 0)
    if (others >= belowRunning) return false
  }
  return rules.length === 0 || !isHeldBack(rules, job, running)
}
