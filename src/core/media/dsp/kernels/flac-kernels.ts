import { createKernel, type Kernel } from './kernel.js'

/**
 * The loops of a FLAC encoder over the samples of a block. Samples are doubles that hold integers, so that sums of
 * products are exact; residuals are 32-bit integers. Offsets count floats, those of doubles are even.
 */
export interface FlacKernels {
  /**
   * Splits interleaved 16-bit samples of two channels. Reads and writes one more if the count is odd.
   *
   * @param pairs two samples in the place of each float
   */
  separatePairs(pairs: number, left: number, right: number, count: number): void
  /**
   * Writes the means of two signals, rounded down, and their differences; of one sample more if the count is odd.
   */
  middleAndSide(left: number, right: number, middle: number, side: number, count: number): void
  /**
   * Writes five doubles: the sums of the magnitudes of the signal and of its first to fourth differences, from the
   * fifth sample on and without the last if the count is odd.
   */
  differenceSums(signal: number, to: number, count: number): void
  /**
   * Writes nine doubles: the sums of products of the signal, multiplied by the window, with itself 0 to 8 samples
   * before. The last sample of an odd count is left out. The windowed signal goes to `windowed`, before which eight
   * doubles must be 0.
   */
  autocorrelate(signal: number, window: number, windowed: number, to: number, count: number): void
  /**
   * Writes, at the position of each sample from `order` on, its difference to `floor(scale * sum)`, where `sum` is that
   * of the coefficients times the preceding samples. Reads and writes up to three more than `count`.
   *
   * @returns the largest magnitude; the integers are right only if it is less than 2^31
   */
  residual(signal: number, coefficients: number, order: number, scale: number, to: number, count: number): number
  /**
   * Writes the sum of the folded residuals of each part, as doubles. They are folded as in Rice codes: 0, -1, 1, -2, 2
   * ... count as 0, 1, 2, 3, 4 ...
   *
   * @param order how many samples at the start of the first part have no residual
   * @param length of every part, in samples
   */
  foldedSums(residual: number, order: number, length: number, parts: number, to: number): void
  /**
   * Finds the division of the residuals into equal parts, each with its own Rice parameter, that takes the fewest
   * expected bits. Writes its order (the number of parts is 2 to this power) and the parameters, as integers
   * (`partitionFields` in all).
   *
   * @param sums of the folded residuals of the parts, which are overwritten
   * @param parts most parts: a power of two up to `maxPartitions` that divides the samples
   * @param order how many samples at the start have no residual
   * @param parameterBits 4 or 5; parameters are less than the largest number of this width
   * @returns the bits, including those of the parameters
   */
  choosePartitions(
    sums: number,
    parts: number,
    sampleCount: number,
    order: number,
    parameterBits: number,
    to: number,
  ): number
  /**
   * Writes the parameter of each part and its residuals in Rice codes, after the `bit` bits that `to` holds already.
   * The last word is filled up with zeros.
   *
   * @param partitions as `choosePartitions` writes them
   * @returns how many bits `to` holds now
   */
  writePartitions(
    residual: number,
    sampleCount: number,
    order: number,
    partitions: number,
    parameterBits: number,
    to: number,
    bit: number,
  ): number
}

/** Most parts of a block. */
export const maxPartitions = 32
/** The order and the parameters of a division, and room for those of another one. */
export const partitionFields = 1 + 2 * maxPartitions

export const maxOrder = 8

export function createFlacKernels(floats: number): Kernel<FlacKernels> {
  return createKernel('flac-kernels', floats)
}
