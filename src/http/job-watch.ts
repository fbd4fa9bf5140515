import { isTerminal, type JobRecord } from '../core/engine/job/job.js'
import type { HttpEngine } from './http-engine.js'

const events = ['job.started', 'job.progressed', 'job.requeued', 'job.succeeded', 'job.failed', 'job.deleted'] as const

/** Other processes change jobs without an event here; this is how late that is noticed. */
const pollMs = 1000

export interface FollowOptions {
  /** Application that owns the job. */
  app: string
  /** Ends the following. */
  signal: AbortSignal
  /** Yields `'idle'` when nothing has changed for so long. Default: never. */
  idleMs?: number
}

/** Follows jobs for waiting requests and event streams. Listens to the engine only while somebody waits. */
export class JobWatch {
  readonly #engine: Pick<HttpEngine, 'get' | 'on' | 'off'>
  readonly #maxWaiting: number
  readonly #bells = new Map<string, Set<() => void>>()
  readonly #waiting = new Map<string, number>()

  /** @param maxWaiting followers that an application may have at a time. */
  constructor(engine: Pick<HttpEngine, 'get' | 'on' | 'off'>, maxWaiting: number) {
    this.#engine = engine
    this.#maxWaiting = maxWaiting
  }

  /** Whether the application may follow one more job. */
  hasRoom(app: string): boolean {
    return (this.#waiting.get(app) ?? 0) < this.#maxWaiting
  }

  /** The job now and after each visible change, until it has ended, is deleted, or `signal` fires. */
  async *follow(
    id: string,
    { app, signal, idleMs = Infinity }: FollowOptions,
  ): AsyncGenerator<JobRecord | 'idle', void, undefined> {
    const bell = new Bell(signal)
    this.#add(id, bell.ring)
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
        await bell.heard(Math.min(pollMs, idleMs))
      }
    } finally {
      bell.close()
      this.#remove(id, bell.ring)
      this.#count(app, -1)
    }
  }

  #count(app: string, change: 1 | -1): void {
    const waiting = (this.#waiting.get(app) ?? 0) + change
    if (waiting > 0) this.#waiting.set(app, waiting)
    else this.#waiting.delete(app)
  }

  #add(id: string, ring: () => void): void {
    if (this.#bells.size === 0) for (const event of events) this.#engine.on(event, this.#onEvent)
    const bells = this.#bells.get(id) ?? new Set()
    this.#bells.set(id, bells.add(ring))
  }

  #remove(id: string, ring: () => void): void {
    const bells = this.#bells.get(id)
    bells?.delete(ring)
    if (bells?.size === 0) this.#bells.delete(id)
    if (this.#bells.size === 0) for (const event of events) this.#engine.off(event, this.#onEvent)
  }

  readonly #onEvent = ({ job }: { job: JobRecord }): void => {
    for (const ring of this.#bells.get(job.id) ?? []) ring()
  }
}

/** A ring that comes while nobody listens is heard by the next one who does. */
class Bell {
  readonly #signal: AbortSignal
  #rung = false
  #wake = () => {}

  constructor(signal: AbortSignal) {
    this.#signal = signal
    signal.addEventListener('abort', this.ring)
  }

  readonly ring = (): void => {
    this.#rung = true
    this.#wake()
  }

  async heard(atMostMs: number): Promise<void> {
    if (!this.#rung) {
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        timer = setTimeout(resolve, atMostMs)
      })
      clearTimeout(timer)
    }
    this.#rung = false
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.ring)
  }
}

function differs(a: JobRecord, b: JobRecord): boolean {
  return a.status !== b.status || a.progress !== b.progress || a.stage !== b.stage
}
