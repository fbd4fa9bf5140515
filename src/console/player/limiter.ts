/** Maximum absolute value of a sample. */
const ceiling = 0.999
const releaseSeconds = 0.15

/**
 * Attenuates a mix around samples above full scale, and releases slowly. It works in blocks, one block behind its
 * input, so that it can look ahead; a mix that is never too high passes unchanged.
 */
export class Limiter {
  readonly #sampleRate: number
  /** The block that comes next, and the gain that is low enough for it. */
  #waiting: Float32Array[] = []
  #needed = 1
  /** The gain with which the block begins. */
  #gain = 1

  constructor(sampleRate: number) {
    this.#sampleRate = sampleRate
  }

  /** All blocks are of the same length; the first output is silence. */
  process(input: readonly Float32Array[], output: readonly Float32Array[]): void {
    const count = output[0]?.length ?? 0
    const peak = input.reduce((most, plane) => plane.reduce((high, value) => Math.max(high, Math.abs(value)), most), 0)
    const needed = peak > ceiling ? ceiling / peak : 1
    // Low enough for both blocks that meet there. A straight line between two such gains is low enough throughout.
    const end = Math.min(this.#needed, needed, this.#gain + count / (releaseSeconds * this.#sampleRate))
    const step = (end - this.#gain) / count
    for (const [index, plane] of output.entries()) {
      const waiting = this.#waiting[index]
      if (waiting) for (let i = 0; i < count; i++) plane[i] = (waiting[i] ?? 0) * (this.#gain + step * i)
    }
    this.#gain = end
    this.#needed = needed
    this.#waiting = output.map((_, index) => input[index]?.slice() ?? new Float32Array(count))
  }
}
