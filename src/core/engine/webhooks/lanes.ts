import { Shares } from '../limits/shares.js'

/** Most receivers answer within this time. A request that takes longer moves to a slow lane. */
export const slowAfterMs = 250

interface LaneLimits {
  concurrency: number
  slowReceivers: number
  concurrencyPerApplication: number
}

/**
 * Divides the requests to webhook receivers among applications. Requests to slow receivers move to separate lanes, so
 * that any number of them delays the messages of other applications only briefly.
 */
export class Lanes {
  /** All requests, in any lane. */
  readonly #requests: Shares
  readonly #lanes: Shares
  readonly #slow: Shares
  #onRelease: () => void = () => {}
  #release: Promise<void> | undefined

  constructor({ concurrency, slowReceivers, concurrencyPerApplication: perApplication }: LaneLimits) {
    this.#requests = new Shares({ total: concurrency + slowReceivers, perApplication, reserve: 0 })
    this.#lanes = new Shares({ total: concurrency })
    this.#slow = new Shares({ total: slowReceivers })
  }

  get free(): number {
    return this.#lanes.total - this.#lanes.held
  }

  /** Applications that hold lanes and can get no more now. */
  get full(): string[] {
    return [...new Set([...this.#requests.full, ...this.#lanes.full, ...this.#slow.full])]
  }

  hasRoom(app: string): boolean {
    const hasSlowRoom = this.#slow.heldBy(app) === 0 || this.#slow.hasRoom(app)
    return this.#requests.hasRoom(app) && this.#lanes.hasRoom(app) && hasSlowRoom
  }

  /** Resolves when a lane becomes free. */
  get released(): Promise<void> {
    return (this.#release ??= new Promise<void>((resolve) => (this.#onRelease = resolve)))
  }

  /**
   * Does the work in a lane, if the application has room.
   *
   * @param work must end soon after its signal fires, because the lane is revoked
   */
  async run<Result>(app: string, work: (signal: AbortSignal) => Promise<Result>): Promise<Result | undefined> {
    const lane = this.hasRoom(app) ? this.#lanes.tryTake(app) : undefined
    const request = lane && this.#requests.tryTake(app)
    if (!request) return undefined
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
      slow?.release()
      request.release()
      this.#free(lane)
    }
  }

  #free(lane: { release(): void }): void {
    lane.release()
    this.#release = undefined
    this.#onRelease()
  }
}
