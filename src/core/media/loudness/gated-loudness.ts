const lowestLufs = -70
const binsPerLu = 100
const binCount = 100 * binsPerLu

/**
 * Histogram of loudness values, in bins of 0.01 LU from -70 LUFS on, so that memory does not grow with the audio.
 * Lower values are left out: the absolute gate. Means are of the energies themselves; only the relative gate and the
 * percentiles are as coarse as the bins.
 */
export class GatedLoudness {
  readonly #counts = new Float64Array(binCount)
  readonly #energies = new Float64Array(binCount)

  /** @param energy weighted mean square of a window */
  add(energy: number): void {
    const bin = Math.floor((lufs(energy) - lowestLufs) * binsPerLu)
    if (!(bin >= 0)) return
    const within = Math.min(bin, binCount - 1)
    this.#counts[within]!++
    this.#energies[within]! += energy
  }

  /**
   * Loudness of the mean of the values above a gate, which is this far below the mean of all values. -Infinity if there
   * are none.
   */
  mean(gateLu: number): { loudness: number; gate: number } {
    const gate = this.#mean(0) + gateLu
    return { loudness: this.#mean(this.#firstBin(gate)), gate }
  }

  /** Loudness that the given fractions of the values above that gate do not exceed. */
  percentiles(gateLu: number, fractions: readonly number[]): number[] {
    const first = this.#firstBin(this.#mean(0) + gateLu)
    let count = 0
    for (let bin = first; bin < binCount; bin++) count += this.#counts[bin]!
    return fractions.map((fraction) => {
      let left = Math.round((count - 1) * fraction)
      for (let bin = first; bin < binCount; bin++) {
        left -= this.#counts[bin]!
        if (left < 0) return lufs(this.#energies[bin]! / this.#counts[bin]!)
      }
      return -Infinity
    })
  }

  #firstBin(gate: number): number {
    return Math.max(0, Math.ceil((gate - lowestLufs) * binsPerLu))
  }

  #mean(first: number): number {
    let [count, energy] = [0, 0]
    for (let bin = first; bin < binCount; bin++) {
      count += this.#counts[bin]!
      energy += this.#energies[bin]!
    }
    return count === 0 ? -Infinity : lufs(energy / count)
  }
}

/** Loudness of a weighted mean square (ITU-R BS.1770-5, annex 1). */
export function lufs(energy: number): number {
  return -0.691 + 10 * Math.log10(energy)
}
