import type { JobRecord } from '../../../core/engine/job/job.js'
import { servesPool } from '../../../core/engine/job/pool.js'
import type { Claimable } from '../../../core/engine/ports/job-store.js'

/** What a claim asks for. */
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
