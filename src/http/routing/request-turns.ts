import { type Share, Shares } from '../../core/engine/limits/shares.js'

/** Requests that begin in one pass of the event loop before earlier ones are done, */
const perPass = 2
/** and milliseconds after which none begins in this pass any more. */
const passMs = 1

/**
 * Divides the event loop among applications that send requests: what begins in one of its passes lasts a few
 * milliseconds, and others wait for the next, in which work that goes on has its turn, too. So a request waits for
 * little in each of the passes that it needs itself, however many come at the same time.
 */
export class RequestTurns {
  readonly #shares = new Shares({ total: perPass, reserve: 0 })
  /** Of the pass in which a request has begun. */
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
    // In a later pass it has been given back.
    if (this.#passEndsAt !== undefined && performance.now() < this.#passEndsAt) share?.release()
  }
}
