/** One holder of each key at a time, in order of request. */
export class KeyLocks {
  readonly #tails = new Map<string, Promise<void>>()

  /** Runs `work` once all earlier holders of the key have ended. */
  async hold<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#tails.get(key)
    let release = () => {}
    const tail = new Promise<void>((resolve) => (release = resolve))
    this.#tails.set(key, tail)
    try {
      await before
      return await work()
    } finally {
      release()
      if (this.#tails.get(key) === tail) this.#tails.delete(key)
    }
  }
}
