import PQueue from 'p-queue'

/**
 * A fetch that takes longer gives its run slot to another job. Until then, the next job may have to wait for it, so an
 * application with a slow fetch gets no second such wait.
 */
const slowAfterMs = 100

export interface StageLimits {
  /** Attempts that may run at a time. */
  concurrency: number
  /** Slow fetches in addition to them. */
  slowInputs: number
  /** Of these, most of one application. */
  slowInputsPerApplication: number
}

/**
 * The stages of this process's attempts. Many may fetch their inputs and few may run: an attempt whose input arrives
 * slowly occupies no run slot until the input is complete. A quick fetch keeps its slot, so that this process claims no
 * more jobs than it can run soon.
 */
export class Stages {
  readonly #limits: StageLimits
  readonly #slots: PQueue
  /** Slow fetches by application. */
  readonly #slow = new Map<string, number>()
  readonly #onRoom: () => void

  /** @param onRoom called when a fetch turns out to be slow, so that there may be room for another job */
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

  /** Applications with their full share of slow fetches: this process claims no more of their jobs. */
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

  /**
   * Does the work once a slot is free. If the signal fires before that, it rejects at once; afterwards the work has to
   * observe the signal itself.
   */
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
