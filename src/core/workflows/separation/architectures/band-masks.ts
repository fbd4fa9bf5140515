/** A stretch of bins, `[first, end)`, and how many of them are a band. Those of a list follow each other. */
export type BandRange = readonly [first: number, end: number, width: number]

/** Complex spectra of a stereo signal in one array, `[4, frames, bins]`: left real, left imaginary, right, right. */
export interface StereoFrames {
  data: Float32Array
  frameCount: number
  bins: number
}

/** Bands of a network that sees band powers and gives masks. Bins that are in no band are silent in what is masked. */
export class BandMasks {
  readonly bandCount: number
  readonly #starts: readonly number[]

  constructor(ranges: readonly BandRange[]) {
    this.#starts = ranges.flatMap(([first, end, width]) =>
      Array.from({ length: (end - first) / width }, (_, band) => first + band * width),
    )
    this.bandCount = this.#starts.length
    this.#starts = [...this.#starts, ranges.at(-1)![1]]
  }

  /**
   * Mean powers of mid, side, left and right in each band, `[4, rows, bands]`, where mid and side are half the sum
   * and half the difference of left and right. Each power is summed by itself: if one were derived from the others, a
   * source at one side would leave rounding errors at the other, which a network that compresses powers can see.
   *
   * @param rows frames of `powers`, at least those of the mixture; further ones repeat the last one
   * @returns the mean over all frames and bands of the power of mid plus that of side
   */
  measure({ data, frameCount, bins }: StereoFrames, powers: Float32Array, rows: number): number {
    const { bandCount } = this
    const starts = this.#starts
    const [plane, bandPlane] = [frameCount * bins, rows * bandCount]
    let total = 0
    for (let frame = 0, at = 0; frame < frameCount; frame++) {
      const row = frame * bins
      for (let band = 0; band < bandCount; band++, at++) {
        const end = row + starts[band + 1]!
        let [mid, side, left, right] = [0, 0, 0, 0]
        for (let bin = row + starts[band]!; bin < end; bin++) {
          const leftRe = data[bin]!
          const leftIm = data[bin + plane]!
          const rightRe = data[bin + 2 * plane]!
          const rightIm = data[bin + 3 * plane]!
          left += leftRe * leftRe + leftIm * leftIm
          right += rightRe * rightRe + rightIm * rightIm
          mid += (leftRe + rightRe) ** 2 + (leftIm + rightIm) ** 2
          side += (leftRe - rightRe) ** 2 + (leftIm - rightIm) ** 2
        }
        const width = starts[band + 1]! - starts[band]!
        powers[at] = mid / (4 * width)
        powers[at + bandPlane] = side / (4 * width)
        powers[at + 2 * bandPlane] = left / width
        powers[at + 3 * bandPlane] = right / width
        total += (mid + side) / (4 * width)
      }
    }
    for (let row = frameCount; row < rows; row++) {
      for (let at = row * bandCount; at < powers.length; at += bandPlane)
        powers.copyWithin(at, at - (row - frameCount + 1) * bandCount, at - (row - frameCount) * bandCount)
    }
    return total / (frameCount * bandCount)
  }

  /**
   * Multiplies mid and side by their masks.
   *
   * @param masks of mid and of side, `[2, rows, bands]`
   */
  apply(masks: Float32Array, { data, frameCount, bins }: StereoFrames): void {
    const { bandCount } = this
    const starts = this.#starts
    const [plane, maskPlane] = [frameCount * bins, masks.length / 2]
    for (let row = 0, at = 0; row < plane; row += bins) {
      this.#silence(data, plane, row, row + starts[0]!)
      this.#silence(data, plane, row + starts[bandCount]!, row + bins)
      for (let band = 0; band < bandCount; band++, at++) {
        // Left and right, as mid plus side and mid minus side.
        const same = (masks[at]! + masks[at + maskPlane]!) / 2
        const other = (masks[at]! - masks[at + maskPlane]!) / 2
        const end = row + starts[band + 1]!
        for (let bin = row + starts[band]!; bin < end; bin++) {
          for (let left = bin; left < bin + 2 * plane; left += plane) {
            const right = left + 2 * plane
            const [value, across] = [data[left]!, data[right]!]
            data[left] = same * value + other * across
            data[right] = same * across + other * value
          }
        }
      }
    }
  }

  #silence(data: Float32Array, plane: number, from: number, to: number): void {
    for (let channel = 0; channel < 4; channel++) data.fill(0, from + channel * plane, to + channel * plane)
  }
}
