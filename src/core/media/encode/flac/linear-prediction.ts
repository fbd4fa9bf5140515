import { fixedPredictors } from '../../decode/flac/flac-frame.js'

/** A prediction of each sample from the samples before it: `floor(2^-shift * sum of coefficient * sample)`. */
export interface Predictor {
  /** For the sample before, the one before that, and so on. */
  coefficients: readonly number[]
  shift: number
  /** Bits of a coefficient with its sign; 0 for the predictors that FLAC knows by their order. */
  precision: number
  /** Expected bits of all residuals and coefficients, without the bits that all residuals have in common. */
  bits: number
}

export interface Block {
  sampleCount: number
  /** Bits of a sample that is stored verbatim; the order of the predictor is the number of these samples. */
  sampleBits: number
}

/**
 * The best of the fixed predictors.
 *
 * @param differenceSums sums of magnitudes of the differences, by order
 */
export function fixedPredictor(differenceSums: Float64Array, { sampleCount, sampleBits }: Block): Predictor {
  let order = 0
  for (let other = 1; other < differenceSums.length; other++)
    if (differenceSums[other]! < differenceSums[order]!) order = other
  const mean = (Math.LN2 * differenceSums[order]!) / sampleCount
  const bits = Math.max(0, Math.log2(mean)) * sampleCount + order * sampleBits
  return { coefficients: fixedPredictors[order]!, shift: 0, precision: 0, bits }
}

const maxShift = 15

/**
 * The linear predictor with the fewest expected bits (Levinson and Durbin's recursion).
 *
 * @param autocorrelation of the windowed signal, from lag 0 to the highest order
 * @returns `undefined` where nothing can be predicted, or not in coefficients of that precision
 */
export function linearPredictor(
  autocorrelation: Float64Array,
  { sampleCount, sampleBits }: Block,
  precision: number,
): Predictor | undefined {
  let error = autocorrelation[0]!
  if (!(error > 0)) return undefined
  const current: number[] = []
  let best: { bits: number; coefficients: number[] } | undefined
  for (let order = 1; order < autocorrelation.length && order < sampleCount; order++) {
    let sum = autocorrelation[order]!
    for (let i = 0; i < current.length; i++) sum -= current[i]! * autocorrelation[order - 1 - i]!
    const reflection = sum / error
    for (let low = 0, high = current.length - 1; low <= high; low++, high--) {
      const value = current[low]!
      current[low]! -= reflection * current[high]!
      if (low < high) current[high]! -= reflection * value
    }
    current.push(reflection)
    error *= 1 - reflection * reflection
    const bits = residualBits(error, sampleCount) * (sampleCount - order) + order * (sampleBits + precision)
    if (!best || bits < best.bits) best = { bits, coefficients: current.slice() }
    // Nothing is left to predict, or rounding errors dominate.
    if (!(error > 0)) break
  }
  return best && quantized(best, precision)
}

/** Bits expected for each residual of a normal distribution whose squares add up to `error`. */
function residualBits(error: number, sampleCount: number): number {
  return error > 0 ? Math.max(0, 0.5 * Math.log2((0.5 * Math.LN2 * Math.LN2 * error) / sampleCount)) : 0
}

/** Rounds the coefficients; the rounding error of each is carried over to the next. */
function quantized(
  { coefficients, bits }: { coefficients: readonly number[]; bits: number },
  precision: number,
): Predictor | undefined {
  const largest = Math.max(...coefficients.map(Math.abs))
  const limit = 2 ** (precision - 1)
  const shift = Math.min(maxShift, precision - 2 - Math.floor(Math.log2(largest)))
  if (!(shift >= 0)) return undefined
  const rounded: number[] = []
  let lost = 0
  for (const coefficient of coefficients) {
    const wanted = coefficient * 2 ** shift + lost
    const value = Math.min(Math.max(Math.round(wanted), -limit), limit - 1)
    lost = wanted - value
    rounded.push(value)
  }
  return { coefficients: rounded, shift, precision, bits }
}
