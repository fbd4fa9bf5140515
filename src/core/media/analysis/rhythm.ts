import type { BeatTimes } from './beats/beat-times.js'

export interface Rhythm {
  /** Null where nothing repeats. */
  tempo: {
    bpm: number
    confidence: number
    /**
     * The tempo, and its half or its double, which some would count instead; strength (0..1) is how regular the onsets
     * are there. A model that finds the beats gives none.
     */
    candidates?: { bpm: number; strength: number }[]
  } | null
  /** Times in seconds. */
  beats: number[]
  /** The beats that begin bars; null if there are less than two bars. */
  downbeats: { beatsPerBar: number; times: number[]; confidence: number } | null
}

/** An interval belongs to the tempo if it differs from the usual one by less than this part of it. */
const steadiness = 0.1

/**
 * The rhythm from beats and first beats of bars. Confidence is the share of intervals, or of bars, that are as usual.
 */
export function rhythmOf({ beats, downbeats }: BeatTimes): Rhythm {
  const intervals = beats.slice(1).map((time, index) => time - beats[index]!)
  const usual = [...intervals].sort((one, other) => one - other).at(intervals.length >> 1)
  if (usual === undefined) return { tempo: null, beats, downbeats: null }
  // A pause, or missed beats, count as many beats as fit into them.
  let position = 0
  const positions = [0, ...intervals.map((interval) => (position += Math.max(1, Math.round(interval / usual))))]
  const steady = intervals.filter((interval) => Math.abs(interval / usual - 1) < steadiness)
  const lengths = downbeats.slice(1).map((time, index) => beats.indexOf(time) - beats.indexOf(downbeats[index]!))
  const count = (length: number) => lengths.filter((each) => each === length).length
  const beatsPerBar = [...lengths].sort((one, other) => count(other) - count(one)).at(0)
  return {
    tempo: { bpm: bpmOf(beats, positions), confidence: share(steady.length, intervals.length) },
    beats,
    downbeats:
      beatsPerBar === undefined
        ? null
        : { beatsPerBar, times: downbeats, confidence: share(count(beatsPerBar), lengths.length) },
  }
}

/**
 * The tempo of the line that fits the beats best: finer than the frames.
 *
 * @param positions which beat each is, counted from any one. Default: each is the next one
 */
export function bpmOf(times: readonly number[], positions: readonly number[] = [...times.keys()]): number {
  const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const [middle, mean] = [meanOf(positions), meanOf(times)]
  let [product, square] = [0, 0]
  times.forEach((time, index) => {
    product += (positions[index]! - middle) * (time - mean)
    square += (positions[index]! - middle) ** 2
  })
  return Math.round((60 * square * 100) / product) / 100
}

function share(part: number, whole: number): number {
  return Math.round((1000 * part) / whole) / 1000
}
