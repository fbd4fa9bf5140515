/**
 * Adds noise of one step's height and triangular distribution, so that rounding to integers leaves noise instead of distortion (S. P.
 * Lipshitz, R. A. Wannamaker, J. Vanderkooy, Quantization and Dither, JAES 40, 1992). A block that consists of such integers already is
 * left as it is: copies stay exact, and silence stays silent. The noise is the same in every run.
 */
export class Dither {
  readonly #full: number
  #state = 0x2545_f491

  /** @param bits of the integers */
  constructor(bits: 16 | 24) {
    this.#full = 2 ** (bits - 1)
  }

  /** @returns the planes themselves, or new ones */
  apply(planes: readonly Float32Array[]): readonly Float32Array[] {
    const full = this.#full
    if (planes.every((plane) => plane.every((value) => Number.isInteger(value * full)))) return planes
    return planes.map((plane) => plane.map((value) => value + (this.#random() - this.#random()) / full))
  }

  /** Even on 0..1 (G. Marsaglia, Xorshift RNGs, Journal of Statistical Software 8, 2003). */
  #random(): number {
    let state = this.#state
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    this.#state = state
    return (state >>> 0) / 2 ** 32
  }
}
