import { setImmediate as nextPass } from 'node:timers/promises'
import type { JobRecord } from '../job/job.js'
import { rulesFor } from '../job/scheduling.js'
import type { BlobStore } from '../ports/blob-store.js'
import type { JobStore } from '../ports/job-store.js'
import { remembered } from '../limits/remembered.js'
import type { Turn } from '../limits/rested.js'
import type { StoreClock } from '../store-clock.js'
import { meanSeconds } from '../workers/worker.js'
import type { WorkerRegistry } from '../workers/worker-registry.js'
import type { WorkflowRegistry } from '../workflow/registry.js'
import { readSlices } from './job-slices.js'
import { forecast } from './queue-forecast.js'
import { type WorkHistory, workHistory } from './work-history.js'

/** Estimated start and end of a job, in epoch milliseconds. */
export interface JobEstimate {
  /** Null once it has started. */
  startsAt: number | null
  endsAt: number
}

/** Lower progress comes from fetching and loading, and says nothing about the speed. */
const leastProgress = 0.1
/** At this progress, the job's own speed has the same weight as the durations of other jobs. */
const evenProgress = 0.05

/**
 * Milliseconds until a running job ends, by its progress and other jobs' durations; `undefined` if neither is known.
 *
 * @param workMs for the whole job, by the history of other jobs
 */
export function timeLeft(
  { progress, history }: Pick<JobRecord, 'progress' | 'history'>,
  workMs: number | undefined,
  now: number,
): number | undefined {
  const attempt = history.at(-1)
  // A later attempt may have resumed from kept work, so its speed is unknown.
  const isOwn = attempt?.token === 1 && progress > 0
  const ownMs = isOwn ? Math.max(0, now - attempt.startedAt) / progress : undefined
  if (workMs === undefined) return ownMs === undefined || progress < leastProgress ? undefined : (1 - progress) * ownMs
  if (ownMs === undefined) return (1 - progress) * workMs
  const share = progress / (progress + evenProgress)
  return (1 - progress) * (share * ownMs + (1 - share) * workMs)
}

/** Number of jobs whose durations are used. */
const sampleSize = 50
const keptMs = 5_000
/** Up to this many times `keptMs`, old values are used while new ones are read, because a busy event loop is slow. */
const stillShown = 5
/** Milliseconds of calculation after which other work gets a turn. */
const heldMs = 1
/** Often enough to show jobs moving up in the queue. */
const queueKeptMs = 2_000
/** Most jobs of the queue that are forecast one by one. */
const mostSeen = 200
const mostKept = 1_000
const mostSizes = 10_000

interface EstimateParts {
  jobs: JobStore
  clock: Pick<StoreClock, 'time'>
  blobs: Pick<BlobStore, 'stat'>
  workers: Pick<WorkerRegistry, 'recent'>
  workflows: Pick<WorkflowRegistry, 'get'>
}

/** Lets other work run between two slices. */
const inPasses: Turn = async (work) => {
  const result = await work()
  await nextPass()
  return result
}

type Times = { startsAt: number; endsAt: number }

/** A snapshot of the queue. */
interface SeenQueue {
  times: Map<string, Times>
  /** Applications of the waiting jobs in the snapshot. */
  apps: string[]
  /** Whether more jobs may wait. */
  isCut: boolean
  /** Mean duration of the jobs in the snapshot. */
  meanMs: number
  slots: number
}

/** Estimates from the history of jobs, their progress and the queue; history and queue are cached. */
export class Estimates {
  readonly #parts: EstimateParts
  readonly #histories = new Map<string, () => Promise<WorkHistory>>()
  readonly #sizes = new Map<string, number>()
  readonly #queue = remembered(() => this.#readQueue(), queueKeptMs, stillShown * queueKeptMs)

  constructor(parts: EstimateParts) {
    this.#parts = parts
  }

  /** See `JobEngine.estimate`. */
  async of(job: JobRecord): Promise<JobEstimate | undefined> {
    if (job.status === 'STARTED') {
      const [workMs, now] = await Promise.all([this.#workMs(job), this.#parts.clock.time()])
      const leftMs = timeLeft(job, workMs, now)
      return leftMs === undefined ? undefined : { startsAt: null, endsAt: Math.round(now + leftMs) }
    }
    if (job.status !== 'QUEUED') return undefined
    const [workMs, rules] = await Promise.all([this.#workMs(job), this.#parts.jobs.rules()])
    if (workMs === undefined || rulesFor(rules, job).some(({ state }) => state === 'paused')) return undefined
    const queue = await this.#queue()
    const times = queue?.times.get(job.id) ?? (queue && (await this.#timesBehind(queue, job, workMs)))
    return times && { startsAt: Math.round(times.startsAt), endsAt: Math.round(times.endsAt) }
  }

  async #readQueue(): Promise<SeenQueue | undefined> {
    const { jobs, workers } = this.#parts
    const [found, known, rules] = await Promise.all([jobs.queue?.({ max: mostSeen }), workers.recent(), jobs.rules()])
    if (!found) return undefined
    const now = await this.#parts.clock.time()
    const works = await this.#worksMs([...found.running, ...found.waiting])
    const measured = works.filter((ms) => ms !== undefined)
    const meanMs = measured.reduce((sum, ms) => sum + ms, 0) / measured.length
    const running = found.running.map((job, index) => ({
      job,
      leftMs: timeLeft(job, works[index] ?? meanMs, now) ?? 0,
    }))
    const waiting = found.waiting.map((job, index) => ({ job, workMs: works[running.length + index] ?? meanMs }))
    return {
      // Without any known duration, there is no forecast.
      times:
        measured.length === 0 ? new Map<string, Times>() : forecast({ running, waiting, workers: known, rules }, now),
      apps: waiting.map(({ job }) => job.app),
      isCut: waiting.length === mostSeen,
      meanMs,
      slots: known.reduce((sum, { slots }) => sum + slots, 0) || running.length,
    }
  }

  async #worksMs(jobs: readonly JobRecord[]): Promise<(number | undefined)[]> {
    const works: (number | undefined)[] = []
    let heldSince = performance.now()
    for (const job of jobs) {
      works.push(await this.#workMs(job))
      if (performance.now() - heldSince < heldMs) continue
      await nextPass()
      heldSince = performance.now()
    }
    return works
  }

  /** Assumes that behind the snapshot, the queue moves as within it. */
  async #timesBehind(queue: SeenQueue, job: JobRecord, workMs: number): Promise<Times | undefined> {
    const last = Math.max(...[...queue.times.values()].map(({ startsAt }) => startsAt))
    if (!queue.isCut || !Number.isFinite(last)) return undefined
    const position = await positionOf(this.#parts.jobs, job.id)
    if (position === undefined) return undefined
    const own = queue.apps.filter((app) => app === job.app).length
    const turns = own > 0 ? queue.apps.length / own : new Set(queue.apps).size + 1
    const startsAt = last + (Math.max(0, position * turns - queue.apps.length) * queue.meanMs) / queue.slots
    return { startsAt, endsAt: startsAt + workMs }
  }

  /** Milliseconds for the whole job, from the history of its application or otherwise the average of the workers. */
  async #workMs(job: JobRecord): Promise<number | undefined> {
    const [history, bytes] = await Promise.all([this.#historyOf(job), this.#bytesOf(job)])
    const fromHistory = history(job, bytes, job.lease?.owner)
    if (fromHistory !== undefined) return fromHistory
    const seconds = meanSeconds(await this.#parts.workers.recent(), job.workflow)
    return seconds === undefined ? undefined : 1000 * seconds
  }

  #historyOf({ app, workflow }: JobRecord): Promise<WorkHistory> {
    const key = `${app} ${workflow}`
    let history = this.#histories.get(key)
    if (!history) {
      if (this.#histories.size >= mostKept) this.#histories.clear()
      const inputs = this.#parts.workflows.get(workflow)?.inputs ?? []
      // For one application only: a list of all successful jobs of the store would read past all waiting ones.
      const page = { app, workflows: [workflow], statuses: ['SUCCEEDED'] as const, limit: sampleSize }
      const read = async () => {
        const jobs: JobRecord[] = []
        await readSlices(
          page,
          (slice) => this.#parts.jobs.list(slice),
          (some) => void jobs.push(...some),
          inPasses,
        )
        return workHistory(jobs, inputs)
      }
      history = remembered(read, keptMs, stillShown * keptMs)
      this.#histories.set(key, history)
    }
    return history()
  }

  /** Bytes of the uploaded inputs; `undefined` if an input comes from elsewhere. */
  async #bytesOf({ workflow, uploads, params }: JobRecord): Promise<number | undefined> {
    const inputs = this.#parts.workflows.get(workflow)?.inputs ?? Object.keys(uploads)
    if (inputs.some((name) => uploads[name] === undefined && params[name] !== undefined)) return undefined
    const sizes = await Promise.all(Object.values(uploads).map((key) => this.#sizeOf(key)))
    return sizes.length === 0 || sizes.includes(undefined) ? undefined : sizes.reduce<number>((a, b) => a + (b ?? 0), 0)
  }

  async #sizeOf(key: string): Promise<number | undefined> {
    const known = this.#sizes.get(key)
    if (known !== undefined) return known
    const stat = await this.#parts.blobs.stat(key).catch(() => undefined)
    if (this.#sizes.size >= mostSizes) this.#sizes.clear()
    if (stat) this.#sizes.set(key, stat.bytes)
    return stat?.bytes
  }
}

/** Highest position that is counted. */
const mostAhead = 1000

/** See `JobEngine.queuePosition`. */
export async function positionOf(jobs: JobStore, id: string): Promise<number | undefined> {
  const ahead = await jobs.ahead(id, { max: mostAhead })
  return ahead === undefined ? undefined : ahead + 1
}
