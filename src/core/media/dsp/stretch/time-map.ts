/** Shares of a window, before and after an onset, within which the input passes unchanged. */
const shareBefore = 0.35
const shareAfter = 0.3

/**
 * Maps positions of the output to positions of the input. Onsets keep their proper time, and around them the input runs
 * at its own speed, so that no frame changes them; the speed between them makes up for it.
 */
export class TimeMap {
  readonly #before: number
  readonly #after: number
  /** Samples of a frame. The map bends to an onset, and back, within at most that many output samples each. */
  readonly #window: number
  #ratio: number
  /** Positions at which the current ratio began. */
  #inputStart = 0
  #outputStart = 0
  readonly #onsets: number[] = []
  /** End of the latest onset's stretch at its own speed, and how far it is ahead of the straight line. */
  #lastEnd = -Infinity
  #lastLead = 0

  /** @param window samples of a frame */
  constructor(window: number, ratio: number) {
    this.#window = window
    this.#before = shareBefore * window
    this.#after = shareAfter * window
    this.#ratio = ratio
  }

  /** Takes effect at that position of the output. */
  setRatio(ratio: number, output: number): void {
    this.#inputStart = this.inputAt(output)
    this.#outputStart = output
    this.#lastEnd = -Infinity
    this.#ratio = ratio
  }

  get ratio(): number {
    return this.#ratio
  }

  addOnset(input: number): void {
    this.#onsets.push(input)
  }

  /** Samples of input after a position by which an onset has to be known. */
  get lookAhead(): number {
    return this.#window * (1.1 + 0.4 * Math.max(1, 1 / this.#ratio))
  }

  /** Whether the input passes at its own speed there. For rising positions, as `inputAt` is. */
  isAtOnset(output: number): boolean {
    this.#forget(output)
    return this.#onsets.length > 0 && output >= this.#outputOf(this.#onsets[0]!) - this.#before
  }

  inputAt(output: number): number {
    this.#forget(output)
    const straight = this.#inputOf(output)
    const [onset] = this.#onsets
    let gap = Infinity
    let [start, lead] = [Infinity, 0]
    if (onset !== undefined) {
      start = this.#outputOf(onset) - this.#before
      if (output >= start) return onset - this.#before + (output - start)
      lead = onset - this.#before - this.#inputOf(start)
      gap = start - this.#lastEnd
    }
    // The straight line, with transitions from the latest onset and to the next one.
    const way = Math.min(gap, this.#window * Math.min(1, this.#ratio))
    const from = Math.max(0, 1 - (output - this.#lastEnd) / way)
    const to = Math.max(0, 1 - (start - output) / way)
    return straight + from * this.#lastLead + to * lead
  }

  #forget(output: number): void {
    for (let [onset] = this.#onsets; onset !== undefined; [onset] = this.#onsets) {
      const end = this.#outputOf(onset) + this.#after
      if (output <= end) return
      this.#onsets.shift()
      this.#lastEnd = end
      this.#lastLead = onset + this.#after - this.#inputOf(end)
    }
  }

  #inputOf(output: number): number {
    return this.#inputStart + (output - this.#outputStart) / this.#ratio
  }

  #outputOf(input: number): number {
    return this.#outputStart + (input - this.#inputStart) * this.#ratio
  }
}
