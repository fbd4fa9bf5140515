import { type Share, Shares } from '../../core/engine/limits/shares.js'

/** Turns in one pass of the event loop; one is reserved for applications that ask no more than the average. */
const perPass = 2
const reserve = 1
/** Milliseconds of a pass after which a finished turn no longer makes room for another one in the same pass. */
const passMs = 1
/** Milliseconds after which a pass counts as long. */
const longPassMs = 2
/** Most milliseconds that others wait for work in progress: it may be waiting for its client. */
const mostHeldMs = 50
/** Least fraction of a turn that is counted. */
const leastUsed = 0.25

/** Called when the work is done, with the milliseconds that it took. Without them, it counts as a whole pass. */
export type EndTurn = (tookMs?: number) => void

interface Turn {
  app: string
  beganAt: number
  isDone: boolean
  release(): void
}

/**
 * Divides the event loop among applications: the work begun in one pass takes a few milliseconds; the rest waits for
 * the next pass, in which work in progress has its turn, too. While passes are long, applications that ask more than
 * the average also wait for the end of the work in progress, their own and that of applications that ask less. So a
 * request waits little in each of the passes that it needs, however many arrive at once. Applications whose work is
 * short go before those that ask as often for longer work.
 */
export class LoopTurns {
  readonly #shares = new Shares({ total: perPass, reserve })
  #passBeganAt = 0
  #isPassing = false
  /** When every application could last begin work: at least every 50 ms, even if others never pause. */
  #openAt = -Infinity
  /** Turns begun in this pass, and earlier ones that were in progress when it began. */
  #turns: Turn[] = []

  /**
   * Returns a promise only if the application has to wait.
   *
   * @throws the signal's reason if it fires first
   */
  next(app: string, signal?: AbortSignal): EndTurn | Promise<EndTurn> {
    signal?.throwIfAborted()
    const share = this.#shares.takeNow(app)
    return share ? this.#begin(app, share) : this.#shares.take(app, signal).then((later) => this.#begin(app, later))
  }

  #begin(app: string, share: Share | undefined): EndTurn {
    const beganAt = performance.now()
    if (!this.#isPassing) this.#startPass(beganAt)
    let used = 1
    const turn = { app, beganAt, isDone: false, release: () => share?.release(used) }
    this.#turns.push(turn)
    return (tookMs = Infinity) => {
      turn.isDone = true
      used = Math.min(1, Math.max(leastUsed, tookMs / passMs))
      if (used < 1 && performance.now() < this.#passBeganAt + passMs) turn.release()
    }
  }

  #startPass(now: number): void {
    this.#isPassing = true
    this.#passBeganAt = now
    setImmediate(this.#endPass)
  }

  readonly #endPass = (): void => {
    const now = performance.now()
    const wasLong = now - this.#passBeganAt > longPassMs
    this.#isPassing = false
    const turns = this.#turns
    this.#turns = turns.filter(({ isDone, beganAt }) => !isDone && now - beganAt < mostHeldMs)
    const waitedFor = wasLong ? this.#turns : []
    const held = waitedFor.filter(({ app }) => this.#shares.asksMoreThanAverage(app))
    const holdsBack = held.length < waitedFor.length && now - this.#openAt < mostHeldMs
    if (!holdsBack) this.#openAt = now
    this.#shares.holdsBackBusy = holdsBack
    for (const turn of turns) if (!held.includes(turn)) turn.release()
    if (waitedFor.length > 0) this.#startPass(now)
  }
}
