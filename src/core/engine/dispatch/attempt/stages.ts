import { Shares } from '../../limits/shares.js'

/**
 * A fetch that takes longer gives its run slot to another job. Until then it may delay that job, so an application with
 * a slow fetch is not granted a second such delay.
 */
const slowAfterMs = 100

/** Up to this share of taken slots, the minimum rate applies; with all taken, `mostHaste` times that rate. */
const hasteFrom = 0.5
const mostHaste = 64

/** Most ends of attempts written while further jobs are claimed: as many as one statement writes. */
const mostEnding = 100

export interface StageLimits {
  /** Attempts that may run at a time. */
  concurrency: number
  /** Slow fetches in addition to these attempts. */
  slowInputs: number
  /** Most slow fetches of one application. */
  slowInputsPerApplication: number
}

/** A fetch of an attempt's inputs. */
export interface InputFetch<Result> {
  app: string
  work: () => Promise<Result>
  /** Ends a download that gets no slot, or loses it. Absent: nothing is downloaded, the inputs only need to be read. */
  onCrowded?: () => void
}

/**
 * The stages of this process's attempts. Many may fetch their inputs and few may run: an attempt whose input arrives
 * slowly occupies no run slot until the input is complete. A quick fetch keeps its slot, so that this process claims no
 * more jobs than it can run soon. Slow fetches have separate slots, shared by the applications; a slow download without
 * one is aborted.
 */
export class Stages {
  /** All in one account, because the store has already decided which application is next. */
  readonly #slots: Shares
  readonly #fetchSlots: Shares
  /** Applications that were refused a fetch slot since one was last released. */
  readonly #turnedAway = new Set<string>()
  readonly #onRoom: () => void
  readonly #onReadmitted: () => void
  #ending = 0

  /**
   * @param onRoom called when there may be room for another job: a fetch turned out to be slow, or an attempt only has
   * to write its end
   * @param onReadmitted called when jobs of `slowApplications` may be claimed again
   */
  constructor(
    { concurrency, slowInputs, slowInputsPerApplication }: StageLimits,
    onRoom: () => void,
    onReadmitted: () => void,
  ) {
    this.#slots = new Shares({ total: concurrency, reserve: 0 })
    this.#fetchSlots = new Shares({ total: slowInputs, perApplication: slowInputsPerApplication })
    this.#onRoom = onRoom
    this.#onReadmitted = onReadmitted
  }

  /** Attempts that need no run slot: their inputs arrive slowly, or their end is being written. */
  get withoutSlot(): number {
    return this.#fetchSlots.held + Math.min(this.#ending, mostEnding)
  }

  /** Writes the end of an attempt, while the next job may be claimed. */
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

  /** Factor on the minimum rate of an input, which grows with the share of taken slots. */
  readonly haste = (): number => {
    const taken = this.#fetchSlots.held / this.#fetchSlots.total
    return mostHaste ** Math.max(0, (taken - hasteFrom) / (1 - hasteFrom))
  }

  async fetch<Result>({ app, work, onCrowded }: InputFetch<Result>): Promise<Result> {
    let slot: { release(): void } | undefined
    const giveWay = () => {
      // Without a download, inputs are ready soon: they keep the run slot rather than take a fetch slot from others.
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
      if (slot) {
        const wereLeftOut = this.slowApplications.length > 0
        this.#turnedAway.clear()
        slot.release()
        if (wereLeftOut) this.#onReadmitted()
      }
    }
  }

  /**
   * Does the work once a slot is free. Rejects at once if the signal fires before that; afterwards the work must
   * observe the signal itself.
   *
   * @param signal of this run only
   * @param onNoSlot called if no slot is free now
   */
  run<Result>(signal: AbortSignal, work: () => Promise<Result>, onNoSlot?: () => void): Promise<Result> {
    if (!this.#slots.hasRoom('')) onNoSlot?.()
    return this.#slots.use('', work, { signal })
  }
}
