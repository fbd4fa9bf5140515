import type { JobRecord } from '../../../core/engine/job/job.js'
import type { RuleTarget } from '../../../core/engine/job/scheduling.js'

interface Lane {
  workflow: string
  pool: string
  running: number
}

type Counted = Pick<JobRecord, 'workflow' | 'pool' | 'status'>

/** Number of running jobs, by workflow and pool. */
export class RunningLanes {
  readonly #lanes = new Map<string, Lane>()

  /** Counts the job if it runs. */
  add(job: Counted): void {
    this.#count(job, 1)
  }

  /** Stops counting the job. @param job as it was added */
  remove(job: Counted): void {
    this.#count(job, -1)
  }

  ofWorkflow(id: string): number {
    const lanes = this.list().filter(({ workflow }) => workflow === id)
    return lanes.reduce((sum, { running }) => sum + running, 0)
  }

  list(): Lane[] {
    return [...this.#lanes.values()]
  }

  #count({ workflow, pool, status }: Counted, change: 1 | -1): void {
    if (status !== 'STARTED') return
    const key = `${workflow}\n${pool}`
    const running = (this.#lanes.get(key)?.running ?? 0) + change
    if (running > 0) this.#lanes.set(key, { workflow, pool, running })
    else this.#lanes.delete(key)
  }
}

/** Number of these jobs that belong to a rule's target. */
export function begunOf(
  target: RuleTarget,
  begun: ReadonlyMap<string, Pick<JobRecord, 'app' | 'workflow'>> | undefined,
): number {
  let count = 0
  for (const { app, workflow } of begun?.values() ?? [])
    if (target.kind === 'deployment' || target.id === (target.kind === 'workflow' ? workflow : app)) count++
  return count
}
