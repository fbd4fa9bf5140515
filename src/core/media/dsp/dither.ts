const runSamples = 1024

/**
 * Adds noise of one step's height and triangular distribution, so that rounding to integers leaves noise instead of
 * distortion (S. P. Lipshitz, R. A. Wannamaker, J. Vanderkooy, Quantization and Dither, JAES 40, 1992). Runs that
 * already consist of such integers are unchanged: copies stay exact, and silence stays silent. The noise is the same
 * every time.
 */
export class Dither {
  readonly #full: number
  #state = 0x2545_f491

  /** @param bits of the integers */
  constructor(bits: 16 | 24) {
    this.#full = 2 ** (bits - 1)
  }

  /** @returns the planes with noise added; changed planes are new arrays */
  apply(planes: readonly Float32Array[]): Float32Array[] {
    return planes.map((plane) => {
      let result = plane
      for (let from = 0; from < plane.length; from += runSamples) {
        const run = plane.subarray(from, from + runSamples)
        if (run.every((value) => Number.isInteger(value * this.#full))) continue
        if (result === plane) result = plane.slice()
        this.#disturb(result.subarray(from, from + runSamples))
      }
      return result
    })
  }

  #disturb(run: Float32Array): void {
    for (let i = 0; i < run.length; i++) run[i]! += (this.#random() - this.#random()) / this.#full
  }

  /** Uniform on 0..1 (G. Marsaglia, Xorshift RNGs, Journal of Statistical Software 8, 2003). */
  #random(): number {
    let state = this.#state
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    this.#state = state
    return (state >>> 0) / 2 ** 32
  }
}
