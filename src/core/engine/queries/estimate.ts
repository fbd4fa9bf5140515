import type { JobRecord } from '../job/job.js'
import { rulesFor } from '../job/scheduling.js'
import { positionOf } from './queue-position.js'
import type { JobStore } from '../ports/job-store.js'
import { remembered } from '../limits/remembered.js'
import { meanSeconds } from '../workers/worker.js'
import type { WorkerRegistry } from '../workers/worker-registry.js'

/** When a job will probably start and end; epoch milliseconds. */
export interface JobEstimate {
  /** Null once it has started. */
  startsAt: number | null
  endsAt: number
}

/** Recent measurements; a time is undefined if no job has ended yet. */
export interface Throughput {
  /** For jobs of the workflow, as reported by the workers, or else for those of the application. */
  runMs: number | undefined
  /** Median of the successful attempts of all the application's workflows. */
  anyRunMs: number | undefined
  /** Running jobs of the application. */
  running: number
  isPaused: boolean
}

/** Up to here, the progress is that of fetching and loading. */
const leastProgress = 0.1

/** `undefined` without enough measurements. @param position of a waiting job */
export function estimateOf(
  job: JobRecord,
  position: number | undefined,
  { runMs, anyRunMs, running, isPaused }: Throughput,
  now: number,
): JobEstimate | undefined {
  if (job.status === 'STARTED') {
    const leftMs = timeLeft(job, runMs, now)
    return leftMs === undefined ? undefined : { startsAt: null, endsAt: Math.round(now + leftMs) }
  }
  // Without a running job, the application's next turn is unknown.
  if (position === undefined || isPaused || running === 0 || runMs === undefined || anyRunMs === undefined)
    return undefined
  const startsAt = now + (position * anyRunMs) / running
  return { startsAt: Math.round(startsAt), endsAt: Math.round(startsAt + runMs) }
}

function timeLeft({ progress, history }: JobRecord, runMs: number | undefined, now: number): number | undefined {
  const attempt = history.at(-1)
  // Not for a later attempt, which may have resumed from kept work.
  if (attempt?.token === 1 && progress >= leastProgress) return ((now - attempt.startedAt) * (1 - progress)) / progress
  return runMs === undefined ? undefined : runMs * (1 - progress)
}

/** Number of jobs whose durations are used. */
const sampleSize = 20
const keptMs = 5_000
const mostRunning = 1_000
const mostKept = 1_000

/** Measures what estimates need, at most every five seconds per application and workflow. */
export class Throughputs {
  readonly #jobs: JobStore
  readonly #workers: Pick<WorkerRegistry, 'recent'>
  readonly #kept = new Map<string, () => Promise<Throughput>>()

  constructor(jobs: JobStore, workers: Pick<WorkerRegistry, 'recent'>) {
    this.#jobs = jobs
    this.#workers = workers
  }

  /** See `JobEngine.estimate`. */
  async estimate(job: JobRecord): Promise<JobEstimate | undefined> {
    if (job.status !== 'QUEUED' && job.status !== 'STARTED') return undefined
    const position = job.status === 'QUEUED' ? await positionOf(this.#jobs, job.id) : undefined
    return estimateOf(job, position, await this.of(job), Date.now())
  }

  of(job: Pick<JobRecord, 'app' | 'workflow'>): Promise<Throughput> {
    const key = `${job.app} ${job.workflow}`
    let measured = this.#kept.get(key)
    if (!measured) {
      if (this.#kept.size >= mostKept) this.#kept.clear()
      const { app, workflow } = job
      this.#kept.set(key, (measured = remembered(() => this.#measure({ app, workflow }), keptMs)))
    }
    return measured()
  }

  async #measure({ app, workflow }: Pick<JobRecord, 'app' | 'workflow'>): Promise<Throughput> {
    // For one application: listing all successful jobs of the store would read past everything that waits.
    const succeeded = { app, statuses: ['SUCCEEDED'] as const, limit: sampleSize }
    const [workers, ofWorkflow, ofApp, running, rules] = await Promise.all([
      this.#workers.recent(),
      this.#jobs.list({ ...succeeded, workflows: [workflow] }),
      this.#jobs.list(succeeded),
      this.#jobs.count({ app, statuses: ['STARTED'] }, { max: mostRunning }),
      this.#jobs.rules(),
    ])
    const isPaused = rulesFor(rules, { app, workflow }).some(({ state }) => state === 'paused')
    const meanMs = 1000 * (meanSeconds(workers, workflow) ?? NaN)
    const runMs = Number.isNaN(meanMs) ? median(ofWorkflow.flatMap(runOf)) : meanMs
    return { runMs, anyRunMs: median(ofApp.flatMap(runOf)) ?? runMs, running, isPaused }
  }
}

/** How long the attempt that produced the results took. */
function runOf({ history }: JobRecord): number[] {
  const attempt = history.at(-1)
  return !attempt || attempt.endedAt === null ? [] : [attempt.endedAt - attempt.startedAt]
}

function median(values: number[]): number | undefined {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)]
}
