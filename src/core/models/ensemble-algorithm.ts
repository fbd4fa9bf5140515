/**
 * Ways to combine the estimates of several models, named as in audio-separator and the Ultimate Vocal Remover.
 * With the waves `x_k[n]` of the models `k`, their weights `w_k`, and their spectra `X_k[t, f]` (Hann window of
 * 2048 samples, hop 1024, centred):
 *
 * - `avg_wave`: `sum(w_k x_k) / sum(w_k)`
 * - `median_wave`: the median of the `x_k`; of an even number, the mean of the two in the middle
 * - `min_wave`, `max_wave`: the `x_k` of the smallest, or largest, `|x_k|`, with its sign
 * - `avg_fft`: `sum(w_k X_k) / sum(w_k)` over the models whose band has the frequency; without bands the same as
 *   `avg_wave`
 * - `median_fft`: the median of the real parts and that of the imaginary parts
 * - `min_fft`, `max_fft`: the `X_k` of the smallest, or largest, `|X_k|`, with its phase (`min_mag` and `max_mag`,
 *   `uvr_min_spec` and `uvr_max_spec` elsewhere)
 *
 * The minimum keeps the least of other sounds, the maximum loses the least of the wanted one. Of two values of the same
 * magnitude the greater one is taken, so that the order of the models does not matter.
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
