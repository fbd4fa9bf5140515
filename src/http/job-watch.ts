import { isTerminal, type JobRecord } from '../core/engine/job/job.js'
import type { HttpEngine } from './http-engine.js'
import { applicationChanges, type JobChange } from './application-watch.js'

const events = ['job.started', 'job.progressed', 'job.requeued', 'job.succeeded', 'job.failed', 'job.deleted'] as const

/** Other processes change jobs without an event here; this is how late that is noticed. */
const pollMs = 1000

export interface FollowOptions {
  /** Application that owns the job. */
  app: string
  /** Ends the following. */
  signal: AbortSignal
  /** Yields `'idle'` when nothing has changed for this long. Default: never. */
  idleMs?: number
}

/** Follows jobs for waiting requests and event streams. Listens to the engine only while there are any. */
export class JobWatch {
  readonly #engine: Pick<HttpEngine, 'get' | 'list' | 'on' | 'off'>
  readonly #maxWaiting: number
  readonly #listeners = new Map<string, Set<() => void>>()
  readonly #waiting = new Map<string, number>()

  /** @param maxWaiting most simultaneous followers of an application. */
  constructor(engine: Pick<HttpEngine, 'get' | 'list' | 'on' | 'off'>, maxWaiting: number) {
    this.#engine = engine
    this.#maxWaiting = maxWaiting
  }

  /** Whether the application may follow one more job. */
  hasRoom(app: string): boolean {
    return (this.#waiting.get(app) ?? 0) < this.#maxWaiting
  }

  /** The changes of all jobs of an application from now on, until `signal` fires. */
  async *followAll(options: Required<FollowOptions>): AsyncGenerator<JobChange, void, undefined> {
    this.#count(options.app, 1)
    try {
      yield* applicationChanges(this.#engine, options)
    } finally {
      this.#count(options.app, -1)
    }
  }

  /** The job now and after each visible change, until it has ended, is deleted, or `signal` fires. */
  async *follow(
    id: string,
    { app, signal, idleMs = Infinity }: FollowOptions,
  ): AsyncGenerator<JobRecord | 'idle', void, undefined> {
    const changes = new ChangeSignal(signal)
    this.#add(id, changes.notify)
    this.#count(app, 1)
    try {
      let shown: JobRecord | undefined
      let quietSince = performance.now()
      while (!signal.aborted) {
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
    } finally {
      changes.close()
      this.#remove(id, changes.notify)
      this.#count(app, -1)
    }
  }

  /** The same, counted as one that follows a job of the application while it is read. */
  async *counted<Value>(app: string, source: AsyncIterable<Value>): AsyncGenerator<Value, void, undefined> {
    this.#count(app, 1)
    try {
      yield* source
    } finally {
      this.#count(app, -1)
    }
  }

  #count(app: string, change: 1 | -1): void {
    const waiting = (this.#waiting.get(app) ?? 0) + change
    if (waiting > 0) this.#waiting.set(app, waiting)
    else this.#waiting.delete(app)
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
class ChangeSignal {
  readonly #signal: AbortSignal
  #notified = false
  #wake = () => {}

  constructor(signal: AbortSignal) {
    this.#signal = signal
    signal.addEventListener('abort', this.notify)
  }

  readonly notify = (): void => {
    this.#notified = true
    this.#wake()
  }

  async wait(atMostMs: number): Promise<void> {
    if (!this.#notified) {
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        timer = setTimeout(resolve, atMostMs)
      })
      clearTimeout(timer)
    }
    this.#notified = false
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.notify)
  }
}

function differs(a: JobRecord, b: JobRecord): boolean {
  return a.status !== b.status || a.progress !== b.progress || a.stage !== b.stage
}
