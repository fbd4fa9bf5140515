import { z } from 'zod'
import { servesPool } from '../job/pool.js'

export const workerKind = 'worker'

/**
 * `open`: takes jobs. `cordoned`: takes none and finishes those that it runs. `draining`: as that, and what still runs
 * after `dispatch.graceMs` is handed over to other workers.
 */
export const workerStateSchema = z.enum(['open', 'cordoned', 'draining'])
export type WorkerState = z.infer<typeof workerStateSchema>

/** A process that runs jobs, as it reports itself. */
export const workerSchema = z.looseObject({
  /** As in the leases that it holds. */
  owner: z.string(),
  workflows: z.array(z.string()),
  labels: z.array(z.string()),
  state: workerStateSchema.default('open'),
  /** Workflows that it has run lately: their models are loaded. */
  warm: z.array(z.string()).default([]),
  /** The address by which notifications of the queue can name it. */
  address: z.string().optional(),
  /** Jobs that it runs at a time. */
  slots: z.number(),
  running: z.number(),
  /** Epoch milliseconds, by its own clock. */
  startedAt: z.number(),
  seenAt: z.number(),
  /** Recent successful jobs and the seconds that they took, by workflow. */
  durations: z.record(z.string(), z.object({ jobs: z.number(), seconds: z.number() })),
})
export type Worker = z.infer<typeof workerSchema>

/** Whether the worker takes such jobs. */
export function serves(
  worker: Pick<Worker, 'workflows' | 'labels' | 'state'>,
  { workflow, pool }: { workflow: string; pool: string },
): boolean {
  return worker.state === 'open' && worker.workflows.includes(workflow) && servesPool(worker.labels, pool)
}

/** Waiting and running jobs of one workflow and pool, and who can take them. */
export interface PoolStatus {
  workflow: string
  /** Labels that its jobs need. */
  needs: string[]
  /** Waiting jobs that are due, counted up to 10,000. */
  queued: number
  /** How long the first of them has been due, in milliseconds. */
  oldestMs: number
  running: number
  /** Live workers that take such jobs. */
  workers: number
  /** Jobs that they run at a time, of any workflow. */
  slots: number
  /** Seconds of waiting work for one slot, from the recent average of such jobs; null while unknown. */
  backlogSeconds: number | null
}

/** How long a job of the workflow takes; undefined if no worker has finished one. */
export function meanSeconds(workers: readonly Worker[], workflow: string): number | undefined {
  const known = workers.flatMap(({ durations }) => durations[workflow] ?? [])
  const jobs = known.reduce((sum, each) => sum + each.jobs, 0)
  return jobs === 0 ? undefined : known.reduce((sum, { seconds }) => sum + seconds, 0) / jobs
}
