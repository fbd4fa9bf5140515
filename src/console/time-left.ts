interface Mark {
  atMs: number
  progress: number
}

/** A separation's speed changes little, but its first steps (fetching, loading) are not like the rest. */
const windowMs = 20_000
const leastShare = 0.01

/** Estimates the time left from the progress of the last seconds. */
export class TimeLeft {
  #marks: Mark[] = []

  /** @param atMs of a clock that only goes forward */
  observe(progress: number, atMs: number): void {
    const last = this.#marks.at(-1)
    // A new attempt begins from the start.
    if (last && progress < last.progress) this.#marks = []
    if (last?.progress !== progress) this.#marks.push({ atMs, progress })
    while (this.#marks.length > 2 && (this.#marks[1]?.atMs ?? atMs) < atMs - windowMs) this.#marks.shift()
  }

  /** Seconds, or undefined while there is too little to tell. */
  seconds(nowMs: number): number | undefined {
    const [first, last] = [this.#marks.at(0), this.#marks.at(-1)]
    if (!first || !last || last.progress - first.progress < leastShare) return undefined
    const msPerShare = (last.atMs - first.atMs) / (last.progress - first.progress)
    return Math.max(0, (1 - last.progress) * msPerShare - (nowMs - last.atMs)) / 1000
  }
}
