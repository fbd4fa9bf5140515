/** A range of bins, `[first, end)`, and the bins per band in it. The ranges of a list are contiguous. */
export type BandRange = readonly [first: number, end: number, width: number]

/** Complex spectra of a stereo signal in one array, `[4, frames, bins]`: left real, left imaginary, right, right. */
export interface StereoFrames {
  data: Float32Array
  frameCount: number
  bins: number
}

/** Bands of a network that reads band powers and returns masks. Bins outside all bands are silenced. */
export function bandMasks(ranges: readonly BandRange[]) {
  const starts = ranges.flatMap(([first, end, width]) =>
    Array.from({ length: (end - first) / width }, (_, band) => first + band * width),
  )
  const bandCount = starts.length
  starts.push(ranges.at(-1)![1])

  /**
   * Mean powers of mid, side, left and right in each band, where mid and side are half the sum and half the difference
   * of left and right. Each power is summed by itself: if one were derived from the others, a source at one side would
   * leave rounding errors at the other, which a network that compresses powers can see.
   *
   * @param powers of the whole segment, `[4, rows, bands]`
   * @param firstRow row of the first of the frames
   * @returns the sum over these frames and all bands of the power of mid plus that of side
   */
  const measure = ({ data, frameCount, bins }: StereoFrames, powers: Float32Array, firstRow: number) => {
    const [plane, bandPlane] = [frameCount * bins, powers.length / 4]
    let total = 0
    for (let frame = 0, at = firstRow * bandCount; frame < frameCount; frame++) {
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
    return total
  }

  /** Multiplies a frame by its row of masks, `[rows, bands]`. */
  const apply = (masks: Float32Array, row: number, re: Float32Array, im: Float32Array) => {
    for (let band = 0, at = row * bandCount; band < bandCount; band++, at++) {
      const mask = masks[at]!
      const end = starts[band + 1]!
      for (let bin = starts[band]!; bin < end; bin++) {
        re[bin]! *= mask
        im[bin]! *= mask
      }
    }
    for (const values of [re, im]) values.fill(0, 0, starts[0]).fill(0, starts[bandCount])
  }

  return { bandCount, measure, apply }
}
