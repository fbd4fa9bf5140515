import { Shares } from '../limits/shares.js'

/** Most receivers answer within this time. One that takes longer leaves its lane to others. */
export const slowAfterMs = 250

interface LaneLimits {
  concurrency: number
  slowReceivers: number
  concurrencyPerApplication: number
}

/**
 * The requests to webhook receivers, divided by application. Those to receivers that do not answer soon have lanes of
 * their own, so that any number of these delays a message of another application by a moment only.
 */
export class Lanes {
  readonly #lanes: Shares
  readonly #slow: Shares
  #onRelease: () => void = () => {}
  #release: Promise<void> | undefined

  constructor({ concurrency, slowReceivers, concurrencyPerApplication: perApplication }: LaneLimits) {
    this.#lanes = new Shares({ total: concurrency, perApplication })
    this.#slow = new Shares({ total: slowReceivers, perApplication })
  }

  get free(): number {
    return this.#lanes.total - this.#lanes.held
  }

  /** Applications that have lanes and get no more now. */
  get full(): string[] {
    return [...new Set([...this.#lanes.full, ...this.#slow.full])]
  }

  hasRoom(app: string): boolean {
    return this.#lanes.hasRoom(app) && (this.#slow.heldBy(app) === 0 || this.#slow.hasRoom(app))
  }

  /** Resolves when a lane becomes free. */
  get released(): Promise<void> {
    return (this.#release ??= new Promise<void>((resolve) => (this.#onRelease = resolve)))
  }

  /**
   * Does the work in a lane, if the application has room.
   *
   * @param work has to end soon after the signal fires: the lane is taken away
   */
  async run<Result>(app: string, work: (signal: AbortSignal) => Promise<Result>): Promise<Result | undefined> {
    const lane = this.hasRoom(app) ? this.#lanes.tryTake(app) : undefined
    if (!lane) return undefined
    const lost = new AbortController()
    let slow: { release(): void } | undefined
    const giveWay = () => {
      slow = this.#slow.tryTake(app, () => lost.abort())
      if (!slow) lost.abort()
      this.#free(lane)
    }
    const timer = setTimeout(giveWay, slowAfterMs)
    try {
      return await work(lost.signal)
    } finally {
      clearTimeout(timer)
      this.#free(lane)
      if (slow) this.#free(slow)
    }
  }

  #free(lane: { release(): void }): void {
    lane.release()
    this.#release = undefined
    this.#onRelease()
  }
}
