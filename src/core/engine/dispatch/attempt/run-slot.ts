/** A resumed job runs at least this many times as long as it took to resume, so at most 2 % of its time is lost. */
const runsPerStart = 50

export interface RunSlotOptions {
  /** Shortest time for which an attempt keeps its slot; null: until its end. */
  preemptAfterMs: number | null
  clock?: () => number
}

/** The run slot of one attempt: how long it has been held, and whether another application's job may take it over. */
export class RunSlot {
  readonly #preemptAfterMs: number
  readonly #clock: () => number
  #takenAt: number | undefined
  /** Time that the attempt took to resume, until its first new work; 0 for the first attempt. */
  #startMs: number | undefined
  #isGivenAway = false

  constructor({ preemptAfterMs, clock = () => performance.now() }: RunSlotOptions) {
    this.#preemptAfterMs = preemptAfterMs ?? Infinity
    this.#clock = clock
  }

  get isHeld(): boolean {
    return this.#takenAt !== undefined
  }

  /** How long the slot has been held. */
  get heldMs(): number {
    return this.#takenAt === undefined ? 0 : this.#clock() - this.#takenAt
  }

  /** Whether the slot may go to another job: only after new work was kept, so that every attempt makes progress. */
  get mayGiveWay(): boolean {
    return this.mayGiveWayAtOnce && this.heldMs >= this.#preemptAfterMs
  }

  /** As `mayGiveWay` without the shortest time: for an application with reserved slots. */
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

  /** Call when no more work is kept: the attempt holds its slot to its end, because its later work would be lost. */
  noteStopped(): void {
    this.#startMs = Infinity
  }

  /** Gives the slot away; returns whether it could. */
  giveWay(): boolean {
    if (!this.mayGiveWayAtOnce) return false
    this.#isGivenAway = true
    return true
  }
}
