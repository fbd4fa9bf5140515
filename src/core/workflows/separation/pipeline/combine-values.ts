import type { EnsembleStatistic } from '../../../models/ensemble-algorithm.js'

/** Arrays of one length with the values of each member. */
export interface MemberValues {
  re: readonly Float32Array[]
  /** The imaginary parts of spectra; absent for waves. */
  im?: readonly Float32Array[]
  weights: readonly number[]
}

/** Writes the statistic of the members' values, element by element. */
export function combineValues(
  statistic: EnsembleStatistic,
  { re, im, weights }: MemberValues,
  out: { re: Float32Array; im?: Float32Array },
): void {
  if (statistic === 'min' || statistic === 'max') return extremes(statistic === 'max', re, im, out)
  const combine = statistic === 'avg' ? mean : median
  combine(re, weights, out.re)
  if (im && out.im) combine(im, weights, out.im)
}

function mean(values: readonly Float32Array[], weights: readonly number[], out: Float32Array): void {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  out.fill(0)
  values.forEach((each, member) => {
    const share = weights[member]! / total
    for (let i = 0; i < out.length; i++) out[i]! += share * each[i]!
  })
}

function median(values: readonly Float32Array[], _weights: readonly number[], out: Float32Array): void {
  const sorted = new Float32Array(values.length)
  const upper = values.length >> 1
  const lower = (values.length - 1) >> 1
  for (let i = 0; i < out.length; i++) {
    for (let member = 0; member < values.length; member++) {
      const value = values[member]![i]!
      let at = member
      for (; at > 0 && sorted[at - 1]! > value; at--) sorted[at] = sorted[at - 1]!
      sorted[at] = value
    }
    out[i] = (sorted[lower]! + sorted[upper]!) / 2
  }
}

function extremes(
  isMaximum: boolean,
  re: readonly Float32Array[],
  im: readonly Float32Array[] | undefined,
  out: { re: Float32Array; im?: Float32Array },
): void {
  for (let i = 0; i < out.re.length; i++) {
    let [bestRe, bestIm, best] = [re[0]![i]!, im?.[0]![i] ?? 0, 0]
    best = bestRe * bestRe + bestIm * bestIm
    for (let member = 1; member < re.length; member++) {
      const [itsRe, itsIm] = [re[member]![i]!, im?.[member]![i] ?? 0]
      const size = itsRe * itsRe + itsIm * itsIm
      const isGreater = itsRe > bestRe || (itsRe === bestRe && itsIm > bestIm)
      const isBetter = size === best ? isGreater : size > best === isMaximum
      if (isBetter) [bestRe, bestIm, best] = [itsRe, itsIm, size]
    }
    out.re[i] = bestRe
    if (out.im) out.im[i] = bestIm
  }
}
