import { type Share, Shares } from '../../core/engine/limits/shares.js'

/** Requests that start in one pass of the event loop before earlier ones are done, */
const perPass = 2
/** and milliseconds after which no more start in this pass. */
const passMs = 1

/**
 * Divides the event loop among applications that send requests: what starts in one pass takes a few milliseconds, and
 * the rest waits for the next pass, in which work in progress has its turn, too. So a request waits little in each of
 * the passes that it needs, however many come at the same time.
 */
export class RequestTurns {
  readonly #shares = new Shares({ total: perPass, reserve: 0 })
  /** When the pass ends in which a request has started. */
  #passEndsAt: number | undefined
  #begun: (Share | undefined)[] = []

  /** A promise only if a request of the application has to wait. @returns what to call when it is done */
  next(app: string): (() => void) | Promise<() => void> {
    const share = this.#shares.tryTake(app)
    return share ? this.#begin(share) : this.#shares.take(app).then((later) => this.#begin(later))
  }

  #begin(share: Share | undefined): () => void {
    if (this.#passEndsAt === undefined) {
      this.#passEndsAt = performance.now() + passMs
      setImmediate(this.#endPass)
    }
    this.#begun.push(share)
    return () => this.#done(share)
  }

  readonly #endPass = (): void => {
    this.#passEndsAt = undefined
    for (const share of this.#begun.splice(0)) share?.release()
  }

  #done(share: Share | undefined): void {
    // After that pass, it has been released already.
    if (this.#passEndsAt !== undefined && performance.now() < this.#passEndsAt) share?.release()
  }
}
