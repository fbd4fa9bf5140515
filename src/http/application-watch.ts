import { setTimeout as delay } from 'node:timers/promises'
import type { JobRecord, JobStatus } from '../core/engine/job/job.js'
import type { JobEventName } from '../core/engine/events.js'
import type { FailingReceiver } from '../core/engine/job/receiver.js'
import { sliceRows } from '../core/engine/queries/job-slices.js'
import { keepLatest } from './keep-latest.js'
import type { Share, Shares } from '../core/engine/limits/shares.js'
import type { JobPage, JobQuery } from '../core/engine/ports/job-store.js'
import type { HttpEngine } from './http-engine.js'

/** A change of a job, or of a webhook receiver. All followers of its application get the same object. */
export type JobChange =
  | { kind: 'job'; job: JobRecord }
  | { kind: 'deleted'; id: string }
  | { kind: 'receiver'; receiver: FailingReceiver }

/** A message to a follower. `ready`: from now on it misses nothing. */
export type FollowerMessage = JobChange | { kind: 'ready' } | { kind: 'idle' }

const events: readonly JobEventName[] = [
  'job.created',
  'job.started',
  'job.progressed',
  'job.requeued',
  'job.succeeded',
  'job.failed',
  'job.deleted',
]

/** Interval of polling for changes by other processes, which emit no event here. */
const pollMs = 2000
/** Newest jobs, open jobs and running jobs that a poll reads. */
const polledJobs = 50
/** A poll reads the jobs that have ended since shortly before the last end that it knows: others may be written late. */
const lateEndMs = 5000
/** At first, it reads those of the last minute: a node's clock may differ by this much from the store's. */
const mostSkewMs = 60_000
/** Rest after each slice, as a multiple of its duration: reading records takes at most a fifth of the time. */
const restShare = 4
/** Most jobs with unread changes per follower; beyond that, the follower is dropped. */
const mostUnread = 1000

/** The latest changes, kept for followers. A follower further behind reads the job again: jobs may be large. */
const mostKept = 100

interface Follower {
  /** Receivers, and jobs that the follower has not read since they changed. */
  unread: Map<string, (JobChange & { kind: 'receiver' }) | undefined>
  wake: () => void
  isDropped: boolean
}

interface ApplicationWatchParts {
  engine: Pick<HttpEngine, 'list' | 'get' | 'on' | 'off'>
  app: string
  /** Divides the polls of this process among the applications. */
  polls: Shares
  /** Called when the last follower has left: the watch has ended. */
  onClosed(): void
}

/**
 * The changes of an application's jobs: those of this process at once, those of others by polling. However many
 * followers there are, each change is found once and passed to all. Runs only while it has followers.
 */
export class ApplicationWatch {
  readonly #parts: ApplicationWatchParts
  readonly #followers = new Set<Follower>()
  /** What followers were last told of each job: its state as a text, and the place of this state in the job's life. */
  readonly #shown = new Map<string, { state: string; place: readonly number[] }>()
  /** The last changes of jobs, by id. */
  readonly #kept = new Map<string, JobChange>()
  readonly #reads = new Map<string, Promise<JobChange>>()
  readonly #closed = new AbortController()
  /** The last end of a job that a poll has found. */
  #lastEnd = 0
  #ready: Promise<void> | undefined

  constructor(parts: ApplicationWatchParts) {
    this.#parts = parts
  }

  /**
   * Yields changes from `ready` on, until `signal` fires or the slot is lost. Changes of one job while the follower is
   * busy are merged; a follower that leaves too many unread is dropped. Starts at the first `next`.
   *
   * @param take the slot of the follower, if there is one
   * @throws StemworkError `STORE_UNAVAILABLE` before `ready`.
   */
  async *follow({
    signal,
    idleMs,
    take,
  }: {
    signal: AbortSignal
    idleMs: number
    take: (onLost: () => void) => Pick<Share, 'release'> | undefined
  }): AsyncGenerator<FollowerMessage, void, undefined> {
    const follower: Follower = { unread: new Map(), wake: () => {}, isDropped: false }
    // No abort signal per follower: there may be thousands of followers.
    const drop = () => {
      follower.isDropped = true
      follower.wake()
    }
    const slot = take(drop)
    if (!slot) return this.#closeUnlessFollowed()
    signal.addEventListener('abort', drop)
    this.#followers.add(follower)
    try {
      await (this.#ready ??= this.#start())
      // Changes before `ready` are not reported.
      follower.unread.clear()
      yield { kind: 'ready' }
      while (!signal.aborted && !follower.isDropped) {
        const [next] = follower.unread
        if (next) {
          const [id, receiver] = next
          follower.unread.delete(id)
          yield receiver ?? this.#kept.get(id) ?? (await this.#read(id))
        } else if (!(await hasNews(follower, idleMs))) yield { kind: 'idle' }
      }
    } finally {
      signal.removeEventListener('abort', drop)
      slot.release()
      this.#followers.delete(follower)
      this.#closeUnlessFollowed()
    }
  }

  #start(): Promise<void> {
    for (const event of events) this.#parts.engine.on(event, this.#onEvent)
    this.#parts.engine.on('receiver.disabled', this.#onReceiver)
    const ready = this.#poll()
    ready.then(
      () => void this.#pollOn(),
      () => {},
    )
    return ready
  }

  #closeUnlessFollowed(): void {
    if (this.#followers.size > 0) return
    this.#closed.abort()
    for (const event of events) this.#parts.engine.off(event, this.#onEvent)
    this.#parts.engine.off('receiver.disabled', this.#onReceiver)
    this.#parts.onClosed()
  }

  readonly #onEvent = ({ job }: { job: JobRecord }): void => {
    if (job.app !== this.#parts.app) return
    // A deleted job's record is marked as such, so that no late event revives it.
    this.#tell(job.deleted ? { kind: 'deleted', id: job.id } : { kind: 'job', job })
  }

  readonly #onReceiver = ({ receiver }: { receiver: FailingReceiver }): void => {
    if (receiver.app === this.#parts.app) this.#spread(receiver.origin, { kind: 'receiver', receiver })
  }

  #tell(change: Exclude<JobChange, { kind: 'receiver' }>): void {
    const id = change.kind === 'job' ? change.job.id : change.id
    const shown = this.#shown.get(id)
    const next = change.kind === 'job' ? { state: stateOf(change.job), place: placeOf(change.job) } : gone
    // An event and a poll, or two events, may report the changes of a job in the wrong order.
    if (shown && (shown.state === next.state || isBefore(next.place, shown.place))) return
    this.#shown.set(id, next)
    keepLatest(this.#kept, id, change, mostKept)
    this.#spread(id)
  }

  /** Reads the job as it is now; calls during the read share its result. */
  #read(id: string): Promise<JobChange> {
    const reading = this.#reads.get(id) ?? this.#readNow(id).finally(() => this.#reads.delete(id))
    this.#reads.set(id, reading)
    return reading
  }

  async #readNow(id: string): Promise<JobChange> {
    const job = await this.#parts.engine.get(id, { app: this.#parts.app })
    return job ? { kind: 'job', job } : { kind: 'deleted', id }
  }

  #spread(id: string, receiver?: JobChange & { kind: 'receiver' }): void {
    for (const follower of this.#followers) {
      follower.unread.set(id, receiver)
      follower.isDropped ||= follower.unread.size > mostUnread
      follower.wake()
    }
  }

  async #pollOn(): Promise<void> {
    const { signal } = this.#closed
    while (!signal.aborted) {
      await delay(pollMs, undefined, { signal }).catch(() => {})
      // After an outage, the next poll finds what has changed.
      await this.#poll().catch(() => {})
    }
  }

  /** Reads the store and passes on the changes. */
  async #poll(): Promise<void> {
    const share = await this.#parts.polls.take(this.#parts.app, this.#closed.signal)
    try {
      const known = new Set(this.#shown.keys())
      const open = await this.#readNewest(known, { statuses: ['QUEUED', 'STARTED'] })
      // Workers begin with the oldest jobs.
      if (open === polledJobs) await this.#readNewest(known, { statuses: ['STARTED'] })
      if ((await this.#readNewest(known, {})) === polledJobs) {
        const completedAfter = Math.max(Date.now() - mostSkewMs, this.#lastEnd - lateEndMs)
        await this.#readNewest(known, { statuses: ['SUCCEEDED', 'FAILED'], completedAfter }, mostUnread)
      }
      // Jobs too old for these lists are read once each, and again only after another change.
      for (const id of [...known].slice(0, polledJobs)) {
        const state = this.#shown.get(id)
        const startedAt = performance.now()
        const job = await this.#parts.engine.get(id, { app: this.#parts.app })
        if (this.#shown.get(id) === state) {
          this.#tell(job ? { kind: 'job', job } : { kind: 'deleted', id })
          this.#shown.delete(id)
        }
        await this.#rest(startedAt)
      }
    } finally {
      share?.release()
    }
  }

  /**
   * Passes on the newest matching jobs, and returns how many there were.
   *
   * @param unseen ids, from which those of the jobs found are removed
   */
  async #readNewest(unseen: Set<string>, query: JobQuery, most = polledJobs): Promise<number> {
    let after: JobPage['after']
    let read = 0
    while (read < most) {
      const startedAt = performance.now()
      const limit = Math.min(sliceRows, most - read)
      const jobs = await this.#parts.engine.list({ ...query, app: this.#parts.app, limit, after })
      for (const job of jobs) {
        unseen.delete(job.id)
        this.#lastEnd = Math.max(this.#lastEnd, job.completedAt ?? 0)
        this.#tell({ kind: 'job', job })
      }
      read += jobs.length
      const last = jobs.at(-1)
      if (!last || jobs.length < limit) break
      after = { createdAt: last.createdAt, id: last.id }
      await this.#rest(startedAt)
    }
    return read
  }

  async #rest(startedAt: number): Promise<void> {
    await delay((performance.now() - startedAt) * restShare, undefined, { signal: this.#closed.signal })
  }
}

/** Waits for a change; false if none comes within `idleMs`. */
async function hasNews(follower: Follower, idleMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const woken = await new Promise<boolean>((resolve) => {
    follower.wake = () => resolve(true)
    timer = setTimeout(() => resolve(false), idleMs)
  })
  clearTimeout(timer)
  return woken
}

function stateOf({ status, progress, stage, attempts }: JobRecord): string {
  return JSON.stringify([status, progress, stage, attempts])
}

/** The last state of a job. It is kept until a poll has read that the job is gone. */
const gone = { state: 'deleted', place: [Infinity] }

const statusesInOrder: readonly JobStatus[] = ['STARTED', 'QUEUED', 'SUCCEEDED', 'FAILED']

/** Grows with each change that followers see: after each of its claims, a job is running, queued again and ended. */
function placeOf({ retries, token, status, progress }: JobRecord): number[] {
  return [retries, token, statusesInOrder.indexOf(status), progress]
}

function isBefore(a: readonly number[], b: readonly number[]): boolean {
  const differing = a.findIndex((number, index) => number !== b[index])
  return differing >= 0 && (a[differing] ?? 0) < (b[differing] ?? 0)
}
