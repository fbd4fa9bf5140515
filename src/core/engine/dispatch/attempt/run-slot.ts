/** A job that was set aside runs this many times as long as it took to get going again: at most 2 % of it is that. */
const runsPerStart = 50

export interface RunSlotOptions {
  /** How long an attempt has its slot at least; null: until its end. */
  preemptAfterMs: number | null
  clock?: () => number
}

/** The run slot of one attempt: since when it is held, and whether it may go to the job of another application. */
export class RunSlot {
  readonly #preemptAfterMs: number
  readonly #clock: () => number
  #takenAt: number | undefined
  /** What the attempt took to get going again before it did work that no earlier one had kept; 0 for the first. */
  #startMs: number | undefined
  #isGivenAway = false

  constructor({ preemptAfterMs, clock = () => performance.now() }: RunSlotOptions) {
    this.#preemptAfterMs = preemptAfterMs ?? Infinity
    this.#clock = clock
  }

  get isHeld(): boolean {
    return this.#takenAt !== undefined
  }

  /** How long it is held. */
  get heldMs(): number {
    return this.#takenAt === undefined ? 0 : this.#clock() - this.#takenAt
  }

  /** Only of an attempt that has kept work of its own: so each attempt comes further. */
  get mayGiveWay(): boolean {
    return this.mayGiveWayAtOnce && this.heldMs >= this.#preemptAfterMs
  }

  /** The same, however short it is held: for an application that has the slot reserved. */
  get mayGiveWayAtOnce(): boolean {
    if (this.#startMs === undefined || !this.isHeld || this.#isGivenAway) return false
    return this.heldMs >= runsPerStart * this.#startMs
  }

  /** Does the work that needs the slot. */
  async hold<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#takenAt = this.#clock()
    try {
      return await work()
    } finally {
      this.#takenAt = undefined
    }
  }

  /**
   * Work was kept.
   *
   * @param resumedWorkMs of an attempt that goes on: how long the work lasts at least that is kept first
   */
  noteKept(resumedWorkMs = Infinity): void {
    this.#startMs ??= Math.max(0, this.heldMs - resumedWorkMs)
  }

  /** False if it may not be given away. */
  giveWay(): boolean {
    if (!this.mayGiveWayAtOnce) return false
    this.#isGivenAway = true
    return true
  }
}
