/** A sample older than this says too little: clocks drift, and the server may have been moved. */
const maxAgeMs = 1000

/**
 * The database's time, reckoned from its last answer. It is behind the true one by at most the way of that answer, never ahead,
 * so a lease ends here no later than the database says.
 */
export class DatabaseClock {
  #sampleMs = 0
  #sampledAt = -Infinity

  /** @param epochMs the database's time in an answer that has just arrived */
  note(epochMs: number): void {
    const now = performance.now()
    const isLate = now - this.#sampledAt < maxAgeMs && epochMs < this.#sampleMs + (now - this.#sampledAt)
    if (isLate) return
    this.#sampleMs = epochMs
    this.#sampledAt = now
  }

  /** Epoch milliseconds; `undefined` when the database has not answered for a while. */
  now(): number | undefined {
    const age = performance.now() - this.#sampledAt
    return age < maxAgeMs ? Math.floor(this.#sampleMs + age) : undefined
  }
}
