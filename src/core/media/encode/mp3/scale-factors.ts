import type { Bands } from './band-limits.js'

/** Fineness of the quantization of a granule's bands, in addition to its gain. */
export interface ScaleFactors {
  /** Each makes the steps of its band smaller by 3 dB. */
  factors: readonly number[]
  /** Index of the widths of the factors (ISO/IEC 11172-3, 2.4.2.7), and the bits of all factors together. */
  compress: number
  bits: number
  /** The gain at which the noise of granules of any loudness is about equally audible. */
  gain: number
}

const lowerWidths = [0, 0, 0, 0, 3, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4]
const upperWidths = [0, 1, 2, 3, 0, 1, 2, 3, 1, 2, 3, 1, 2, 3, 2, 3]
/** Widths of the factors of the lower and of the upper bands. */
export const factorWidths = lowerWidths.map((lower, index) => [lower, upperWidths[index]!] as const)

/** The gain at which the steps are as large as a sample at full scale. */
export const unitGain = 210

/**
 * By how much the steps grow with the level of a band: louder sounds mask louder noise, though not as much louder. The
 * format's own steps, which grow with each value, do the rest.
 */
const shaping = 0.45
/** Logarithm of the level below which a band is taken for silent: less than the smallest step of 16 bits. */
const silentLevel = -17
/**
 * Bands without a factor have the steps of the loudest band, but no more than those of a band this much louder (in
 * octaves).
 */
const loudestBeyond = 6

/** @param squares the sum of each band's squares */
export function scaleFactorsOf(squares: Float64Array, { ends, firstWidths, scaled }: Bands): ScaleFactors {
  const levels = levelsOf(squares, ends)
  let loudest = silentLevel
  let unscaled = silentLevel
  for (let band = 0; band < levels.length; band++) {
    if (band < scaled) loudest = Math.max(loudest, levels[band]!)
    else unscaled = Math.max(unscaled, levels[band]!)
  }
  if (unscaled > silentLevel) loudest = Math.max(unscaled, Math.min(loudest, unscaled + loudestBeyond))
  const factors: number[] = []
  let lower = 0
  let upper = 0
  for (let band = 0; band < scaled; band++) {
    const wanted = levels[band]! <= silentLevel ? 0 : Math.round(2 * shaping * (loudest - levels[band]!))
    const factor = Math.max(0, Math.min(wanted, band < firstWidths ? 15 : 7))
    factors.push(factor)
    if (band < firstWidths) lower = Math.max(lower, factor)
    else upper = Math.max(upper, factor)
  }
  const compress = leastWidths(32 - Math.clz32(lower), 32 - Math.clz32(upper), firstWidths, scaled - firstWidths)
  const widths = factorWidths[compress]!
  const bits = widths[0] * firstWidths + widths[1] * (scaled - firstWidths)
  return { factors, compress, bits, gain: unitGain + Math.round(4 * shaping * loudest) }
}

/** Index of the widths that are wide enough and take the fewest bits in all. */
function leastWidths(lower: number, upper: number, lowerBands: number, upperBands: number): number {
  let best = 0
  let least = Infinity
  for (let index = 0; index < factorWidths.length; index++) {
    const widths = factorWidths[index]!
    const bits = widths[0] * lowerBands + widths[1] * upperBands
    if (widths[0] < lower || widths[1] < upper || bits >= least) continue
    best = index
    least = bits
  }
  return best
}

/** Logarithms to base 2 of the mean magnitudes. */
function levelsOf(squares: Float64Array, ends: readonly number[]): Float64Array {
  const levels = new Float64Array(ends.length)
  let start = 0
  for (let band = 0; band < ends.length; band++) {
    levels[band] = Math.max(silentLevel, 0.5 * Math.log2(squares[band]! / (ends[band]! - start)))
    start = ends[band]!
  }
  return levels
}
