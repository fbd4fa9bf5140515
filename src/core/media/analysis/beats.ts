import { framesPerChroma, framesPerSecond } from './spectral-features.js'

/** Cost of an early or late beat relative to a strong onset. */
const tightness = 100

/**
 * Returns the frames of the beats, which lie on strong onsets about one period apart, by dynamic programming over the
 * whole piece (D. P. W. Ellis, Beat Tracking by Dynamic Programming, Journal of New Music Research 36, 2007).
 *
 * @param onsets as `flattened` returns them
 */
export function trackBeats(onsets: Float32Array, bpm: number): number[] {
  const period = (60 * framesPerSecond) / bpm
  const local = smoothed(onsets, period / 32)
  const scores = new Float64Array(local.length)
  const before = new Int32Array(local.length).fill(-1)
  const [nearest, farthest] = [Math.round(period / 2), Math.round(period * 2)]
  const costs = Float64Array.from({ length: farthest + 1 }, (_, lag) =>
    lag < nearest ? Infinity : tightness * Math.log(lag / period) ** 2,
  )
  for (let i = 0; i < local.length; i++) {
    let best = 0
    for (let lag = nearest; lag <= farthest && lag <= i; lag++) {
      const score = scores[i - lag]! - costs[lag]!
      if (score <= best) continue
      best = score
      before[i] = i - lag
    }
    scores[i] = local[i]! + best
  }
  // The last beat has the best score of the last period.
  let last = -1
  for (let i = Math.max(0, local.length - Math.ceil(period)); i < local.length; i++)
    if (last < 0 || scores[i]! > scores[last]!) last = i
  const beats: number[] = []
  for (let beat = last; beat >= 0; beat = before[beat]!) beats.unshift(beat)
  return trimmed(beats, local)
}

/** Drops beats at both ends where there is no music. */
function trimmed(beats: number[], local: Float32Array): number[] {
  const strengths = beats.map((beat) => local[beat]!)
  const threshold =
    0.3 * Math.sqrt(strengths.reduce((sum, value) => sum + value * value, 0) / Math.max(1, beats.length))
  let [from, to] = [0, beats.length]
  while (from < to && strengths[from]! <= threshold) from++
  while (to > from && strengths[to - 1]! <= threshold) to--
  return beats.slice(from, to)
}

export interface Bars {
  beatsPerBar: 3 | 4
  /** Index of the first beat that begins a bar. */
  firstDownbeat: number
  /** 0..1: how much the first beats of bars stand out. */
  confidence: number
}

/**
 * Finds the beats that begin bars, by strong low onsets and changes of harmony. Tries bars of four and three beats;
 * three must be clearly better, because most music has four.
 *
 * @returns undefined for less than two bars
 */
export function estimateBars(
  beats: readonly number[],
  lowOnsets: Float32Array,
  chroma: readonly Float32Array[],
): Bars | undefined {
  if (beats.length < 8) return undefined
  const low = normalized(beats.map((beat) => strongestNear(lowOnsets, beat)))
  const harmonies = beats.map((beat, index) => meanChroma(chroma, beat, beats[index + 1] ?? beat + 1))
  const changes = normalized(
    harmonies.map((harmony, index) => (index === 0 ? 0 : distance(harmony, harmonies[index - 1]!))),
  )
  const accents = low.map((value, index) => value + 1.5 * changes[index]!)
  let best: (Bars & { score: number }) | undefined
  for (const beatsPerBar of [4, 3] as const) {
    for (let firstDownbeat = 0; firstDownbeat < beatsPerBar; firstDownbeat++) {
      let [sum, count] = [0, 0]
      for (let beat = firstDownbeat; beat < beats.length; beat += beatsPerBar) {
        sum += accents[beat]!
        count++
      }
      const score = (sum / count) * (beatsPerBar === 3 ? 0.85 : 1)
      const confidence = Math.min(1, Math.max(0, sum / count / 3))
      if (!best || score > best.score) best = { beatsPerBar, firstDownbeat, confidence, score }
    }
  }
  return best && { beatsPerBar: best.beatsPerBar, firstDownbeat: best.firstDownbeat, confidence: best.confidence }
}

function strongestNear(values: Float32Array, frame: number): number {
  let most = 0
  for (let i = Math.max(0, frame - 3); i <= Math.min(values.length - 1, frame + 3); i++)
    most = Math.max(most, values[i]!)
  return most
}

function meanChroma(chroma: readonly Float32Array[], from: number, to: number): Float32Array {
  const sum = new Float32Array(12)
  // A chroma frame spans four hops; the one that is centred on this moment ends two hops later.
  const [first, last] = [Math.floor(from / framesPerChroma) + 2, Math.ceil(to / framesPerChroma) + 1]
  for (let i = first; i <= Math.max(first, last); i++) chroma[i]?.forEach((value, pitch) => (sum[pitch]! += value))
  return sum
}

/** One minus the cosine of the angle between two chroma vectors. */
function distance(one: Float32Array, other: Float32Array): number {
  let [product, a, b] = [0, 0, 0]
  for (let i = 0; i < 12; i++) {
    product += one[i]! * other[i]!
    a += one[i]! ** 2
    b += other[i]! ** 2
  }
  return a > 0 && b > 0 ? 1 - product / Math.sqrt(a * b) : 0
}

function normalized(values: readonly number[]): number[] {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length)
  return values.map((value) => (deviation > 0 ? (value - mean) / deviation : 0))
}

/** Smooths with a Gaussian; its standard deviation is in frames. */
function smoothed(values: Float32Array, deviation: number): Float32Array {
  const reach = Math.ceil(3 * deviation)
  const weights = Array.from({ length: 2 * reach + 1 }, (_, i) => Math.exp(-0.5 * ((i - reach) / deviation) ** 2))
  return values.map((_, at) => {
    let sum = 0
    for (let i = -reach; i <= reach; i++) sum += weights[i + reach]! * (values[at + i] ?? 0)
    return sum
  })
}
