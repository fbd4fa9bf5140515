import { framesPerSecond } from './spectral-features.js'

export const slowestBpm = 40
export const fastestBpm = 240
/** People tap near this tempo; it decides between half and double tempos. */
const usualBpm = 130
const spreadOctaves = 0.9
const windowSeconds = 12

export interface Tempo {
  bpm: number
  /** 0..1: how regular the onsets are at that tempo. */
  confidence: number
  /** 0..1: the same for another tempo. */
  strengthAt(bpm: number): number
}

/**
 * Returns the tempo that repeats most, by the autocorrelation of the onsets in windows, weighted by how common a tempo
 * is (D. P. W. Ellis, Beat Tracking by Dynamic Programming, Journal of New Music Research 36, 2007).
 *
 * @param onsets as `flattened` returns them
 * @returns undefined if nothing repeats
 */
export function estimateTempo(onsets: Float32Array): Tempo | undefined {
  const correlation = meanAutocorrelation(onsets)
  const at = (lag: number) => {
    const below = Math.floor(lag)
    const rest = lag - below
    return below + 1 < correlation.length ? correlation[below]! * (1 - rest) + correlation[below + 1]! * rest : 0
  }
  let best: { lag: number; score: number } | undefined
  const [shortest, longest] = [(60 * framesPerSecond) / fastestBpm, (60 * framesPerSecond) / slowestBpm]
  for (let lag = shortest; lag <= longest; lag += 0.1) {
    const octaves = Math.log2((60 * framesPerSecond) / lag / usualBpm)
    const weight = Math.exp(-0.5 * (octaves / spreadOctaves) ** 2)
    const score = weight * at(lag)
    if (score > (best?.score ?? 0)) best = { lag, score }
  }
  if (!best || !(correlation[0]! > 0)) return undefined
  const strengthAt = (bpm: number) => {
    const lag = (60 * framesPerSecond) / bpm
    return lag + 1 < correlation.length ? Math.min(1, Math.max(0, at(lag) / correlation[0]!)) : 0
  }
  const bpm = (60 * framesPerSecond) / best.lag
  return { bpm, confidence: strengthAt(bpm), strengthAt }
}

/** How far onsets exceed their moving average, in standard deviations; zero where they are below it. */
export function flattened(onsets: Float32Array): Float32Array {
  const reach = Math.round(framesPerSecond / 2)
  const result = new Float32Array(onsets.length)
  let sum = 0
  for (let i = 0; i < Math.min(reach, onsets.length); i++) sum += onsets[i]!
  for (let i = 0; i < onsets.length; i++) {
    if (i + reach < onsets.length) sum += onsets[i + reach]!
    if (i - reach - 1 >= 0) sum -= onsets[i - reach - 1]!
    const count = Math.min(onsets.length, i + reach + 1) - Math.max(0, i - reach)
    result[i] = Math.max(0, onsets[i]! - sum / count)
  }
  const deviation = Math.sqrt(result.reduce((total, value) => total + value * value, 0) / Math.max(1, result.length))
  return deviation > 0 ? result.map((value) => value / deviation) : result
}

function meanAutocorrelation(onsets: Float32Array): Float64Array {
  const size = Math.min(onsets.length, Math.round(windowSeconds * framesPerSecond))
  const lags = Math.min(size, Math.ceil((60 * framesPerSecond) / slowestBpm) + 2)
  const sum = new Float64Array(lags)
  for (let start = 0; start + size <= onsets.length; start += Math.max(1, size >> 1)) {
    for (let lag = 0; lag < lags; lag++) {
      let products = 0
      for (let i = start; i < start + size - lag; i++) products += onsets[i]! * onsets[i + lag]!
      // Not divided by the number of terms: long lags count less.
      sum[lag]! += products
    }
  }
  return sum
}
