/** Enough to hide some milliseconds of latency to the store; more would only query an empty store. */
const maxAsking = 4

interface Asker<Job> {
  wakes: number
  ask: () => Promise<Job | undefined>
  resolve(job: Job | undefined): void
  reject(error: unknown): void
}

/**
 * The claims of one process. A few run at a time. When one finds nothing, those queued behind it find nothing either,
 * unless a notification arrived since it was sent.
 */
export class ClaimLine<Job> {
  readonly #waiting: Asker<Job>[] = []
  #asking = 0

  /** @param wakes notifications so far */
  next(wakes: number, ask: () => Promise<Job | undefined>): Promise<Job | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ wakes, ask, resolve, reject })
      this.#askNext()
    })
  }

  #askNext(): void {
    if (this.#asking >= maxAsking) return
    const asker = this.#waiting.shift()
    if (!asker) return
    this.#asking++
    asker
      .ask()
      .then((job) => {
        if (job === undefined)
          while (this.#waiting[0] && this.#waiting[0].wakes <= asker.wakes) this.#waiting.shift()?.resolve(undefined)
        asker.resolve(job)
      }, asker.reject)
      .finally(() => {
        this.#asking--
        this.#askNext()
      })
  }
}
