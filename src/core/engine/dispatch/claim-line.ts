/** Enough to keep a store busy that is some milliseconds away; more would only ask an empty one in vain. */
const maxAsking = 4

interface Asker<Job> {
  wakes: number
  ask: () => Promise<Job | undefined>
  resolve(job: Job | undefined): void
  reject(error: unknown): void
}

/**
 * The questions of one process to the store for its next job. A few at a time are under way; when one of them comes back with nothing,
 * so do those that stand behind it, unless somebody has notified of a job since it left.
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
