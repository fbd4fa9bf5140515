import { createKernel, type Kernel } from './kernel.js'
import type { Mp3CodeKernels } from './mp3-codes.js'

/** The loops of an MP3 encoder over the samples of a granule. Offsets count floats. */
export interface Mp3Kernels extends Mp3CodeKernels {
  /**
   * The filter bank: writes rows of 32 subbands, each from 512 samples that begin 32 after those of the previous row.
   * In every second row the odd subbands change their sign, as the transform after it expects.
   *
   * @param window 512 factors
   * @param cosines rows of 16, one for each of the 32 sums to which the 512 products are reduced
   * @param scratch room for 96 floats
   */
  subbandRows(samples: number, window: number, cosines: number, scratch: number, to: number, count: number): void
  /**
   * Multiplies the 36 values of each subband by a matrix of 36 rows and 18 columns, stored 20 apart. Writes 18 values
   * for each subband, and two more after the last.
   */
  transform(rows: number, matrix: number, to: number): void
  /** Limits samples to -most..most, and makes NaN 0. The count is a multiple of 4. */
  limited(samples: number, most: number, count: number): void
  /** Writes three doubles: the sums of squares of six rows each, without the three lowest subbands. */
  energies(rows: number, to: number): void
  /**
   * Butterflies between the neighbouring subbands of a granule.
   *
   * @param factors eight doubles for the values that stay, and eight for those that cross over
   */
  reduceAliases(values: number, factors: number): void
  /**
   * Writes the sum of squares of each band, as doubles.
   *
   * @param ends ends of the bands, as integers; the first band begins at 0
   */
  bandSquares(values: number, ends: number, bands: number, to: number): void
  /** Writes three doubles for each band: the sums of squares of the left and of the right, and of their products. */
  stereoSums(left: number, right: number, ends: number, bands: number, to: number): void
  /** Replaces two channels by their mid and side, with the same energy. The count is a multiple of 2. */
  middleAndSide(left: number, right: number, count: number): void
  /** Writes the magnitudes to the power of 3/4. The count is a multiple of 4. */
  compressed(values: number, to: number, count: number): void
  /** Writes the values, multiplied and rounded as MP3 encoders do, as 32-bit integers. The count is a multiple of 4. */
  quantize(values: number, scale: number, to: number, count: number): void
  /**
   * Multiplies each band by its own factor, a double. All bands have an even length.
   *
   * @param count of all values, a multiple of 4
   * @returns the largest of them, at least 0
   */
  scaleBands(values: number, ends: number, scales: number, bands: number, count: number): number
}

export function createMp3Kernels(floats: number): Kernel<Mp3Kernels> {
  return createKernel('mp3-kernels', floats)
}
