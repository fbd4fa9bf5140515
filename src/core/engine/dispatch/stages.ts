import PQueue from 'p-queue'

/**
 * A fetch that takes longer gives its run slot to another job. Until then the job that comes next may wait for it; so an application
 * that has a slow fetch already is not waited for again.
 */
const slowAfterMs = 100

export interface StageLimits {
  /** Attempts that may run at a time. */
  concurrency: number
  /** Slow fetches beside them. */
  slowInputs: number
  /** Of these, one application's at most. */
  slowInputsPerApplication: number
}

/**
 * The stages of this process's attempts. Many may fetch their inputs, few may run: an attempt whose input comes slowly occupies
 * no run slot until it is there. A quick fetch keeps its slot, so that no more jobs are claimed than can be run soon.
 */
export class Stages {
  readonly #limits: StageLimits
  readonly #slots: PQueue
  /** Slow fetches by application. */
  readonly #slow = new Map<string, number>()
  readonly #onRoom: () => void

  /** @param onRoom called when a fetch has turned out to be slow, so that there may be room for another job */
  constructor(limits: StageLimits, onRoom: () => void) {
    this.#limits = limits
    this.#slots = new PQueue({ concurrency: limits.concurrency })
    this.#onRoom = onRoom
  }

  /** Attempts that occupy no run slot. */
  get slowFetches(): number {
    const all = [...this.#slow.values()].reduce((sum, count) => sum + count, 0)
    return Math.min(all, this.#limits.slowInputs)
  }

  /** Applications that have their share of slow fetches: no more of their jobs are claimed here. */
  get slowApplications(): string[] {
    const { slowInputsPerApplication } = this.#limits
    return [...this.#slow].filter(([, count]) => count >= slowInputsPerApplication).map(([app]) => app)
  }

  async fetch<Result>(app: string, work: () => Promise<Result>): Promise<Result> {
    let isSlow = false
    const giveWay = () => {
      isSlow = true
      this.#count(app, 1)
      this.#onRoom()
    }
    const timer = this.#slow.has(app) ? undefined : setTimeout(giveWay, slowAfterMs).unref()
    if (!timer) giveWay()
    try {
      return await work()
    } finally {
      clearTimeout(timer)
      if (isSlow) this.#count(app, -1)
    }
  }

  /** Does the work once a slot is free. A signal that fires before that rejects at once; the work has to follow it itself. */
  run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      let hasStarted = false
      const onAbort = () => {
        if (!hasStarted) reject(signal.reason)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      // Not p-queue's own `signal`: it frees the slot of an aborted run before its process has ended.
      void this.#slots.add(async () => {
        if (signal.aborted) return reject(signal.reason)
        hasStarted = true
        await work().then(resolve, reject)
        signal.removeEventListener('abort', onAbort)
      })
    })
  }

  #count(app: string, change: 1 | -1): void {
    const count = (this.#slow.get(app) ?? 0) + change
    if (count > 0) this.#slow.set(app, count)
    else this.#slow.delete(app)
  }
}
