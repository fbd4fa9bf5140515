/** A stretch of the track that was handed to the audio hardware. */
interface Stretch {
  /** Time of the audio clock at which it begins. */
  at: number
  /** Its position in the track, in seconds. */
  position: number
  /** Its length at usual speed. */
  seconds: number
  speed: number
}

/** Maps the audio clock to positions in the track. Loops, and waits for the network, change the offset. */
export class Timeline {
  #stretches: Stretch[] = []

  get isEmpty(): boolean {
    return this.#stretches.length === 0
  }

  /** Time of the audio clock at which the last stretch ends. */
  get end(): number | undefined {
    const last = this.#stretches.at(-1)
    return last && last.at + last.seconds / last.speed
  }

  add(stretch: Stretch): void {
    this.#stretches.push(stretch)
  }

  /** The position in the track at this time of the audio clock. Times must not go back. */
  positionAt(time: number): number {
    while (this.#stretches.length > 1 && (this.#stretches[1]?.at ?? Infinity) <= time) this.#stretches.shift()
    const [first] = this.#stretches
    if (!first) return 0
    const passed = Math.max(0, time - first.at) * first.speed
    return first.position + Math.min(first.seconds, passed)
  }
}
