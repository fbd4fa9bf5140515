import { type Share, Shares } from '../../core/engine/limits/shares.js'

/** Requests that start in one pass of the event loop before earlier ones are done, */
const perPass = 2
/** and milliseconds after which no more start in this pass. */
const passMs = 1
/** The least that a request counts as, in passes. */
const leastUsed = 0.25

/**
 * To call when the request is done, with the milliseconds that it took. If it is not called, the request counts as one
 * that took the whole pass.
 */
type EndTurn = (tookMs: number) => void

/**
 * Divides the event loop among applications that send requests: what starts in one pass takes a few milliseconds, and
 * the rest waits for the next pass, in which work in progress has its turn, too. So a request waits little in each of
 * the passes that it needs, however many come at the same time. Applications whose requests are short go before those
 * that ask as often for more.
 */
export class RequestTurns {
  readonly #shares = new Shares({ total: perPass, reserve: 0 })
  /** When the pass ends in which a request has started. */
  #passEndsAt: number | undefined
  /** Releases the shares of the requests that have begun in this pass. */
  #begun: (() => void)[] = []

  /** A promise only if a request of the application has to wait. */
  next(app: string): EndTurn | Promise<EndTurn> {
    const share = this.#shares.tryTake(app)
    return share ? this.#begin(share) : this.#shares.take(app).then((later) => this.#begin(later))
  }

  #begin(share: Share | undefined): EndTurn {
    if (this.#passEndsAt === undefined) {
      this.#passEndsAt = performance.now() + passMs
      setImmediate(this.#endPass)
    }
    let used = 1
    const release = () => share?.release(used)
    this.#begun.push(release)
    return (tookMs) => {
      used = Math.min(1, Math.max(leastUsed, tookMs / passMs))
      // After that pass, it has been released already.
      if (this.#passEndsAt !== undefined && performance.now() < this.#passEndsAt) release()
    }
  }

  readonly #endPass = (): void => {
    this.#passEndsAt = undefined
    for (const release of this.#begun.splice(0)) release()
  }
}
