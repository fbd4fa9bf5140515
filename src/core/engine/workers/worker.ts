import { z } from 'zod'
import { servesPool } from '../job/pool.js'

export const workerKind = 'worker'

/**
 * `open`: takes jobs. `cordoned`: takes no jobs and finishes the running ones. `draining`: like `cordoned`, but jobs
 * that still run after `dispatch.graceMs` are handed over to other workers.
 */
export const workerStateSchema = z.enum(['open', 'cordoned', 'draining'])
export type WorkerState = z.infer<typeof workerStateSchema>

/** A process that runs jobs, as it reports itself. */
export const workerSchema = z.looseObject({
  /** Name of the worker, as in its leases. */
  owner: z.string(),
  workflows: z.array(z.string()),
  labels: z.array(z.string()),
  state: workerStateSchema.default('open'),
  /** Workflows that the worker ran lately: their models are loaded. */
  warm: z.array(z.string()).default([]),
  /** Address by which notifications of the queue can name the worker. */
  address: z.string().optional(),
  /** Most jobs that the worker runs at a time. */
  slots: z.number(),
  running: z.number(),
  /** Epoch milliseconds by the worker's clock, as is `seenAt`. */
  startedAt: z.number(),
  seenAt: z.number(),
  /** Recent successful jobs and the seconds that they took, by workflow. */
  durations: z.record(z.string(), z.object({ jobs: z.number(), seconds: z.number() })),
})
export type Worker = z.infer<typeof workerSchema>

/** Whether the worker takes jobs of this workflow and pool. */
export function serves(
  worker: Pick<Worker, 'workflows' | 'labels' | 'state'>,
  { workflow, pool }: { workflow: string; pool: string },
): boolean {
  return worker.state === 'open' && worker.workflows.includes(workflow) && servesPool(worker.labels, pool)
}

/** Waiting and running jobs of one workflow and pool, and the workers that can take them. */
export interface PoolStatus {
  workflow: string
  /** Labels that its jobs need. */
  needs: string[]
  /** Waiting jobs that are due, counted up to 10,000. */
  queued: number
  /** How long the oldest of these has been due, in milliseconds. */
  oldestMs: number
  running: number
  /** Live workers that take such jobs. */
  workers: number
  /** Jobs of any workflow that these workers run at a time. */
  slots: number
  /** Seconds of waiting work for one slot, from the recent average of the workflow's jobs; null while unknown. */
  backlogSeconds: number | null
}

/** Mean duration of the workflow's recent jobs; `undefined` if no worker has finished one. */
export function meanSeconds(workers: readonly Worker[], workflow: string): number | undefined {
  const known = workers.flatMap(({ durations }) => durations[workflow] ?? [])
  const jobs = known.reduce((sum, each) => sum + each.jobs, 0)
  return jobs === 0 ? undefined : known.reduce((sum, { seconds }) => sum + seconds, 0) / jobs
}
