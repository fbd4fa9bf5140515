/** Places for handlers: at most `count` run at a time. One caller at a time waits for a place. */
export class Slots {
  readonly #count: number
  readonly #running = new Set<Promise<void>>()
  #isOpen = true
  #changed: () => void = () => {}

  constructor(count: number) {
    this.#count = count
  }

  /** Runs the work in a place that `free` has found. */
  run(work: () => Promise<void>): void {
    const run = work().finally(() => {
      this.#running.delete(run)
      this.#changed()
    })
    this.#running.add(run)
  }

  /** Waits for a free place, for `timeoutMs` at most. False: there is none, or there will be none any more. */
  async free(timeoutMs = Infinity): Promise<boolean> {
    if (this.#isOpen && this.#running.size < this.#count) return true
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<false>((resolve) => {
      if (timeoutMs < Infinity) timer = setTimeout(() => resolve(false), timeoutMs)
    })
    try {
      while (this.#isOpen && this.#running.size >= this.#count) {
        const changed = new Promise<true>((resolve) => (this.#changed = () => resolve(true)))
        if (!(await Promise.race([changed, timeout]))) return false
      }
      return this.#isOpen
    } finally {
      clearTimeout(timer)
    }
  }

  /** Has no free place from now on. */
  close(): void {
    this.#isOpen = false
    this.#changed()
  }

  /** Waits for what is running. */
  async ended(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running)
  }
}
