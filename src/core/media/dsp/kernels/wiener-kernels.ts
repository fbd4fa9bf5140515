import { createKernel, type Kernel } from './kernel.js'

/** Sums over the frames of a window, by bin: powers of both sources, and their products between the channels. */
export const sumFields = [
  'voiceLeft',
  'voiceRight',
  'voiceRe',
  'voiceIm',
  'othersLeft',
  'othersRight',
  'othersRe',
  'othersIm',
] as const
export type SumField = (typeof sumFields)[number]

/**
 * The filter `v1 R1 (v1 R1 + v2 R2 + g)^-1` of a bin and window as a function of the powers `v1` and `v2` of a frame.
 * As the adjugate of a sum of 2 x 2 matrices is the sum of their adjugates, it is
 *
 *     v1 / d * (v1 det(R1) + v2 N + g R1), d = v1^2 det(R1) + v2^2 det(R2) + v1 v2 tr(N) + g (v1 tr(R1) + v2 tr(R2)) +
 *     g^2
 *
 * with `N = R1 adj(R2)`, which blocks everything at the others' position. Nothing in `d` is negative, so single
 * precision suffices where the determinant of the sum itself would lose all digits, as in music with equal channels.
 */
export const filterFields = [
  // det(R1), det(R2), tr(N), g tr(R1), g tr(R2), g^2
  'voiceDeterminant',
  'othersDeterminant',
  'mixedDeterminant',
  'voiceTrace',
  'othersTrace',
  'floor',
  // N, row by row.
  'nullLeftRe',
  'nullLeftIm',
  'nullUpperRe',
  'nullUpperIm',
  'nullLowerRe',
  'nullLowerIm',
  'nullRightRe',
  'nullRightIm',
  // g R1: its diagonal and the upper right corner.
  'guardLeft',
  'guardRight',
  'guardRe',
  'guardIm',
] as const
export type FilterField = (typeof filterFields)[number]

/**
 * The loops over the spectra of a tile and over a network's estimate of the voice. Rows hold the bins of one frame and
 * lie `pitch` floats apart; `bins` is a multiple of 4, with zeros in the missing bins. A tile has the spectra of `rows`
 * frames: the planes leftRe, leftIm, rightRe and rightIm, `tilePlane` floats apart. The voice has the same number of
 * rows in two planes, `voicePlane` floats apart.
 */
export interface WienerKernels {
  /** `memory[to + i] = sqrt(memory[re + i]^2 + memory[im + i]^2)`. Returns the largest that is a number. */
  magnitudes(re: number, im: number, to: number, bins: number): number
  /**
   * Adds the tile and the voice, times `scale`, to the sums, and replaces the voice's magnitudes (left, and right in
   * the other plane) by its power and that of the others, which the filter needs. Sums are doubles, `pitch` for each
   * field.
   *
   * Both sources have the mixture's phases. Uses double precision, because the determinants of the sums must be right
   * even where they are tiny compared with their terms: where the channels are alike.
   */
  addToSums(
    tile: number,
    tilePlane: number,
    voice: number,
    voicePlane: number,
    sums: number,
    pitch: number,
    bins: number,
    rows: number,
    scale: number,
  ): void
  /**
   * Replaces the tile by the vocals, from the powers that `addToSums` left. Uses single precision; each field has
   * `pitch` floats.
   */
  filter(
    tile: number,
    tilePlane: number,
    voice: number,
    voicePlane: number,
    filters: number,
    pitch: number,
    bins: number,
    rows: number,
  ): void
}

export function createWienerKernels(floats: number): Kernel<WienerKernels> {
  return createKernel('wiener-kernels', floats)
}
