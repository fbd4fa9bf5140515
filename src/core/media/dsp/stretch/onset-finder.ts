/** Onsets are found on blocks of this many seconds. */
const blockSeconds = 0.003
/** An onset is this many times as strong as the mean and the strongest of the blocks before it. */
const riseOfMean = 6
const riseOfMost = 2.5
const blocksBefore = 10
/** Within its block, an onset is where this share of the block's energy has been reached. */
const shareBefore = 0.05
/** Of several onsets within this time the first one counts. */
const apartSeconds = 0.06
/** Below this mean square of the slope nothing is an onset. */
const floor = 1e-9

/** Finds onsets by the energy of the slope, which rises more sharply at a stroke than the energy itself does. */
export class OnsetFinder {
  readonly #block: number
  readonly #apart: number
  /** Energies of the blocks before the one that is being filled. */
  readonly #before = new Float64Array(blocksBefore)
  /** Energy of each sample of that block. */
  readonly #energies: Float64Array
  #energy = 0
  #filled = 0
  #position = 0
  #last = -Infinity
  readonly #latest: Float64Array

  constructor(sampleRate: number, channelCount: number) {
    this.#block = Math.max(1, Math.round(blockSeconds * sampleRate))
    this.#energies = new Float64Array(this.#block)
    this.#apart = apartSeconds * sampleRate
    this.#latest = new Float64Array(channelCount)
  }

  /** @returns the positions, in samples from the first one that was ever given, of onsets in blocks that ended */
  push(planes: readonly Float32Array[], count: number): number[] {
    const found: number[] = []
    for (let i = 0; i < count; i++) {
      const before = this.#energy
      for (let channel = 0; channel < planes.length; channel++) {
        const value = planes[channel]![i]!
        const slope = value - this.#latest[channel]!
        this.#latest[channel] = value
        this.#energy += slope * slope
      }
      this.#energies[this.#filled] = this.#energy - before
      if (++this.#filled < this.#block) continue
      if (this.#isOnset()) found.push(this.#position + this.#startInBlock())
      this.#before.copyWithin(0, 1)
      this.#before[blocksBefore - 1] = this.#energy
      this.#position += this.#block
      this.#energy = this.#filled = 0
    }
    return found
  }

  #isOnset(): boolean {
    if (this.#energy < floor * this.#block || this.#position - this.#last < this.#apart) return false
    let [sum, most] = [0, 0]
    for (const energy of this.#before) {
      sum += energy
      most = Math.max(most, energy)
    }
    if (this.#energy < (riseOfMean * sum) / blocksBefore || this.#energy < riseOfMost * most) return false
    this.#last = this.#position
    return true
  }

  #startInBlock(): number {
    let sum = 0
    return this.#energies.findIndex((energy) => (sum += energy) >= shareBefore * this.#energy)
  }
}
