import { Shares } from '../../limits/shares.js'

/**
 * A fetch that takes longer gives its run slot to another job. Until then the next job may have to wait for it, so an
 * application with a slow fetch is not granted a second such wait.
 */
const slowAfterMs = 100

/** Up to this share of taken slots no fetch has to hurry; with all taken, this is the factor on the minimum rate. */
const hasteFrom = 0.5
const mostHaste = 64

/** Most ends that are being written while further jobs are claimed: as many as one statement writes. */
const mostEnding = 100

export interface StageLimits {
  /** Attempts that may run at a time. */
  concurrency: number
  /** Slow fetches in addition to them. */
  slowInputs: number
  /** Most slow fetches of one application. */
  slowInputsPerApplication: number
}

/** A fetch of an attempt's inputs. */
export interface InputFetch<Result> {
  app: string
  work: () => Promise<Result>
  /** Called to end a download that gets no slot, or loses it. Absent: the inputs are here, and only have to be read. */
  onCrowded?: () => void
}

/**
 * The stages of this process's attempts. Many may fetch their inputs and few may run: an attempt whose input arrives
 * slowly occupies no run slot until the input is complete. A quick fetch keeps its slot, so that this process claims no
 * more jobs than it can run soon. Slow ones have slots of their own, shared by the applications: without one, a
 * download is ended.
 */
export class Stages {
  /** All of one application: whose turn it is, the store has decided. */
  readonly #slots: Shares
  readonly #fetchSlots: Shares
  /** Applications that were refused a slot since the last one was released. */
  readonly #turnedAway = new Set<string>()
  readonly #onRoom: () => void
  #ending = 0

  /**
   * @param onRoom called when a fetch turns out to be slow, or only the end of an attempt is still to be written, so
   * that there may be room for another job
   */
  constructor({ concurrency, slowInputs, slowInputsPerApplication }: StageLimits, onRoom: () => void) {
    this.#slots = new Shares({ total: concurrency, reserve: 0 })
    this.#fetchSlots = new Shares({ total: slowInputs, perApplication: slowInputsPerApplication })
    this.#onRoom = onRoom
  }

  /** Attempts that need no run slot: their inputs arrive slowly, or their end is being written. */
  get withoutSlot(): number {
    return this.#fetchSlots.held + Math.min(this.#ending, mostEnding)
  }

  /** Writes the end of an attempt. The next job is claimed meanwhile. */
  async end<Result>(write: () => Promise<Result>): Promise<Result> {
    this.#ending++
    this.#onRoom()
    try {
      return await write()
    } finally {
      this.#ending--
    }
  }

  /** Applications that get no slot for a slow fetch: this process claims none of their jobs. */
  get slowApplications(): string[] {
    return [...new Set([...this.#fetchSlots.full, ...this.#turnedAway])]
  }

  /** How many times faster than usual an input has to arrive: the more slots are taken, the faster. */
  readonly haste = (): number => {
    const taken = this.#fetchSlots.held / this.#fetchSlots.total
    return mostHaste ** Math.max(0, (taken - hasteFrom) / (1 - hasteFrom))
  }

  async fetch<Result>({ app, work, onCrowded }: InputFetch<Result>): Promise<Result> {
    let slot: { release(): void } | undefined
    const giveWay = () => {
      // Inputs that are here are read soon: they keep their run slot rather than take a fetch slot from others.
      slot = onCrowded || this.#fetchSlots.hasRoom(app) ? this.#fetchSlots.tryTake(app, onCrowded) : undefined
      if (slot) return this.#onRoom()
      if (!onCrowded) return
      this.#turnedAway.add(app)
      onCrowded()
    }
    const timer = this.#fetchSlots.heldBy(app) > 0 ? undefined : setTimeout(giveWay, slowAfterMs).unref()
    if (!timer) giveWay()
    try {
      return await work()
    } finally {
      clearTimeout(timer)
      if (slot) this.#turnedAway.clear()
      slot?.release()
    }
  }

  /**
   * Does the work once a slot is free. If the signal fires before that, it rejects at once; afterwards the work has to
   * observe the signal itself.
   *
   * @param signal of this run alone
   * @param onNoSlot called if none is free now
   */
  run<Result>(signal: AbortSignal, work: () => Promise<Result>, onNoSlot?: () => void): Promise<Result> {
    if (!this.#slots.hasRoom('')) onNoSlot?.()
    return this.#slots.use('', work, { signal })
  }
}
