import { isTerminal, type JobRecord } from '../core/engine/job/job.js'
import type { HttpEngine } from './http-engine.js'
import { type Share, Shares } from '../core/engine/limits/shares.js'
import { ApplicationWatch, type FollowerMessage } from './application-watch.js'

const events = ['job.started', 'job.progressed', 'job.requeued', 'job.succeeded', 'job.failed', 'job.deleted'] as const

/** Interval of polling for changes by other processes, which emit no event here. */
const pollMs = 1000
/** Simultaneous polls of applications' jobs. */
const maxPolls = 2

type WatchedEngine = Pick<HttpEngine, 'get' | 'list' | 'on' | 'off' | 'closing'>

export interface FollowOptions {
  /** Application that owns the job. */
  app: string
  /** Stops the generator. */
  signal: AbortSignal
  /** Yields `'idle'` when nothing has changed for this long. Default: never. */
  idleMs?: number
}

/**
 * Follows jobs for waiting requests and event streams, which end when the engine closes. Listens to the engine only
 * while a job has followers.
 */
export class JobWatch {
  readonly #engine: WatchedEngine
  readonly #slots: Shares
  readonly #polls = new Shares({ total: maxPolls, perApplication: 1, reserve: 0 })
  readonly #listeners = new Map<string, Set<() => void>>()
  readonly #watches = new Map<string, ApplicationWatch>()

  /** @param slots simultaneous followers */
  constructor(engine: WatchedEngine, slots: { total: number; perApplication: number }) {
    this.#engine = engine
    this.#slots = new Shares(slots)
    engine.closing.addEventListener('abort', () => this.#slots.takeAllAway(), { once: true })
  }

  /** Whether the application may follow one more job. */
  hasRoom(app: string): boolean {
    if (this.#engine.closing.aborted) return false
    // If no slot is free, another application loses one to this one.
    return this.#slots.heldBy(app) === 0 || this.#slots.hasRoom(app)
  }

  /**
   * Yields changes of an application's jobs from now on, until `signal` fires or another application needs the slot
   * more. The first item must be read at once.
   */
  followAll({ app, signal, idleMs }: Required<FollowOptions>): AsyncGenerator<FollowerMessage, void, undefined> {
    const watch = this.#watches.get(app) ?? this.#watch(app)
    return watch.follow({ signal, idleMs, take: (onLost) => this.#take(app, onLost) })
  }

  #watch(app: string): ApplicationWatch {
    const watch = new ApplicationWatch({
      engine: this.#engine,
      app,
      polls: this.#polls,
      onClosed: () => this.#watches.delete(app),
    })
    this.#watches.set(app, watch)
    return watch
  }

  /**
   * Yields the job now and after each visible change, until it has ended, is deleted, or `signal` fires. Ends with
   * `dropped` if another application needs the slot more.
   */
  async *follow(
    id: string,
    { app, signal, idleMs = Infinity }: FollowOptions,
  ): AsyncGenerator<JobRecord | 'idle' | 'dropped', void, undefined> {
    const lost = new AbortController()
    const slot = this.#take(app, () => lost.abort())
    if (!slot) return yield 'dropped'
    const ending = AbortSignal.any([signal, lost.signal])
    const changes = changeSignal(ending)
    this.#add(id, changes.notify)
    try {
      let shown: JobRecord | undefined
      let quietSince = performance.now()
      while (!ending.aborted) {
        const job = await this.#engine.get(id, { app })
        if (!job) return
        if (!shown || differs(shown, job)) {
          shown = job
          quietSince = performance.now()
          yield job
          if (isTerminal(job)) return
        } else if (performance.now() - quietSince >= idleMs) {
          quietSince = performance.now()
          yield 'idle'
        }
        await changes.wait(Math.min(pollMs, idleMs))
      }
      if (lost.signal.aborted) yield 'dropped'
    } finally {
      changes.close()
      this.#remove(id, changes.notify)
      slot.release()
    }
  }

  /** Passes the source through. While it is read, it holds one of the application's follower slots. */
  async *counted<Value>(app: string, source: AsyncIterable<Value>): AsyncGenerator<Value, void, undefined> {
    const slot = this.#slots.tryTake(app)
    try {
      yield* source
    } finally {
      slot?.release()
    }
  }

  #take(app: string, onLost: () => void): Share | undefined {
    return this.#engine.closing.aborted ? undefined : this.#slots.tryTake(app, onLost)
  }

  #add(id: string, notify: () => void): void {
    if (this.#listeners.size === 0) for (const event of events) this.#engine.on(event, this.#onEvent)
    const listeners = this.#listeners.get(id) ?? new Set()
    this.#listeners.set(id, listeners.add(notify))
  }

  #remove(id: string, notify: () => void): void {
    const listeners = this.#listeners.get(id)
    listeners?.delete(notify)
    if (listeners?.size === 0) this.#listeners.delete(id)
    if (this.#listeners.size === 0) for (const event of events) this.#engine.off(event, this.#onEvent)
  }

  readonly #onEvent = ({ job }: { job: JobRecord }): void => {
    for (const notify of this.#listeners.get(job.id) ?? []) notify()
  }
}

/** Remembers a notification that arrives between two waits, so that the next wait returns at once. */
function changeSignal(signal: AbortSignal) {
  let isNotified = false
  let wake = () => {}
  const notify = () => {
    isNotified = true
    wake()
  }
  signal.addEventListener('abort', notify)
  return {
    notify,

    async wait(atMostMs: number): Promise<void> {
      if (!isNotified) {
        let timer: NodeJS.Timeout | undefined
        await new Promise<void>((resolve) => {
          wake = resolve
          timer = setTimeout(resolve, atMostMs)
        })
        clearTimeout(timer)
      }
      isNotified = false
    },

    close: () => signal.removeEventListener('abort', notify),
  }
}

function differs(a: JobRecord, b: JobRecord): boolean {
  return a.status !== b.status || a.progress !== b.progress || a.stage !== b.stage
}
