/** A time limit that can be paused and resumed. */
export class RunTimeLimit {
  readonly #onEnd: () => void
  #leftMs: number
  #startedAt: number | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(limitMs: number, onEnd: () => void) {
    this.#leftMs = limitMs
    this.#onEnd = onEnd
  }

  start(): void {
    if (this.#startedAt !== undefined) return
    this.#startedAt = performance.now()
    this.#timer = setTimeout(this.#onEnd, Math.max(0, this.#leftMs))
    this.#timer.unref()
  }

  pause(): void {
    if (this.#startedAt === undefined) return
    clearTimeout(this.#timer)
    this.#leftMs -= performance.now() - this.#startedAt
    this.#startedAt = undefined
  }
}
