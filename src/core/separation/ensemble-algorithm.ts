/**
 * How the estimates of several models become one, by the names that audio-separator and the Ultimate Vocal Remover gave them. With the
 * waves `x_k[n]` of the models `k`, their weights `w_k`, and their spectra `X_k[t, f]` (Hann window of 2048 samples, hop 1024, centred):
 *
 * - `avg_wave`: `sum(w_k x_k) / sum(w_k)`
 * - `median_wave`: the median of the `x_k`; of an even number, the mean of the two in the middle
 * - `min_wave`, `max_wave`: the `x_k` of the smallest, or largest, `|x_k|`, with its sign
 * - `avg_fft`: `sum(w_k X_k) / sum(w_k)` over the models whose band has the frequency; without bands the same as `avg_wave`
 * - `median_fft`: the median of the real parts and that of the imaginary parts
 * - `min_fft`, `max_fft`: the `X_k` of the smallest, or largest, `|X_k|`, with its phase (`min_mag` and `max_mag`, `uvr_min_spec` and
 *   `uvr_max_spec` elsewhere)
 *
 * The minimum keeps the least of other sounds, the maximum loses the least of the wanted one. Of two values of the same magnitude the
 * greater one is taken, so that the order of the models does not matter.
 */
export const ensembleAlgorithms = [
  'avg_wave',
  'median_wave',
  'min_wave',
  'max_wave',
  'avg_fft',
  'median_fft',
  'min_fft',
  'max_fft',
] as const

export type EnsembleAlgorithm = (typeof ensembleAlgorithms)[number]

export type EnsembleStatistic = 'avg' | 'median' | 'min' | 'max'

export function isSpectral(algorithm: EnsembleAlgorithm): boolean {
  return algorithm.endsWith('_fft')
}

export function statisticOf(algorithm: EnsembleAlgorithm): EnsembleStatistic {
  return algorithm.slice(0, algorithm.indexOf('_')) as EnsembleStatistic
}

/** Frequencies of a model in an ensemble, in Hz: from `from` to just below `to`. */
export interface Band {
  from: number
  to: number
}

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
    const share = weights[member] / total
    for (let i = 0; i < out.length; i++) out[i] += share * each[i]
  })
}

function median(values: readonly Float32Array[], _weights: readonly number[], out: Float32Array): void {
  const sorted = new Float32Array(values.length)
  const upper = values.length >> 1
  const lower = (values.length - 1) >> 1
  for (let i = 0; i < out.length; i++) {
    for (let member = 0; member < values.length; member++) {
      const value = values[member][i]
      let at = member
      for (; at > 0 && sorted[at - 1] > value; at--) sorted[at] = sorted[at - 1]
      sorted[at] = value
    }
    out[i] = (sorted[lower] + sorted[upper]) / 2
  }
}

function extremes(
  isMaximum: boolean,
  re: readonly Float32Array[],
  im: readonly Float32Array[] | undefined,
  out: { re: Float32Array; im?: Float32Array },
): void {
  for (let i = 0; i < out.re.length; i++) {
    let [bestRe, bestIm, best] = [re[0][i], im?.[0][i] ?? 0, 0]
    best = bestRe * bestRe + bestIm * bestIm
    for (let member = 1; member < re.length; member++) {
      const [itsRe, itsIm] = [re[member][i], im?.[member][i] ?? 0]
      const size = itsRe * itsRe + itsIm * itsIm
      const isGreater = itsRe > bestRe || (itsRe === bestRe && itsIm > bestIm)
      const isBetter = size === best ? isGreater : size > best === isMaximum
      if (isBetter) [bestRe, bestIm, best] = [itsRe, itsIm, size]
    }
    out.re[i] = bestRe
    if (out.im) out.im[i] = bestIm
  }
}
