/** A preempted job runs this many times as long as it took to resume, so at most 2 % of its time is lost. */
const runsPerStart = 50

export interface RunSlotOptions {
  /** How long an attempt keeps its slot at least; null: until its end. */
  preemptAfterMs: number | null
  clock?: () => number
}

/** The run slot of one attempt: since when it is held, and whether it may go to the job of another application. */
export class RunSlot {
  readonly #preemptAfterMs: number
  readonly #clock: () => number
  #takenAt: number | undefined
  /** What the attempt took to resume, up to its first work that no earlier one had kept; 0 for the first attempt. */
  #startMs: number | undefined
  #isGivenAway = false

  constructor({ preemptAfterMs, clock = () => performance.now() }: RunSlotOptions) {
    this.#preemptAfterMs = preemptAfterMs ?? Infinity
    this.#clock = clock
  }

  get isHeld(): boolean {
    return this.#takenAt !== undefined
  }

  /** How long it has been held. */
  get heldMs(): number {
    return this.#takenAt === undefined ? 0 : this.#clock() - this.#takenAt
  }

  /** Only once the attempt has kept work of its own, so that every attempt makes progress. */
  get mayGiveWay(): boolean {
    return this.mayGiveWayAtOnce && this.heldMs >= this.#preemptAfterMs
  }

  /** The same, however briefly it has been held: for an application that has the slot reserved. */
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
   * Call when work was kept.
   *
   * @param resumedWorkMs for a resumed attempt: how long the work before its first kept part takes at least
   */
  noteKept(resumedWorkMs = Infinity): void {
    this.#startMs ??= Math.max(0, this.heldMs - resumedWorkMs)
  }

  /** Returns whether it is given away. */
  giveWay(): boolean {
    if (!this.mayGiveWayAtOnce) return false
    this.#isGivenAway = true
    return true
  }
}
