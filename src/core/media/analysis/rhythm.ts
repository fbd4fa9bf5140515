import type { BeatTimes } from './beats/beat-times.js'

export interface Rhythm {
  /** Null if nothing repeats. */
  tempo: {
    bpm: number
    confidence: number
    /**
     * The tempo, and the half or double that some people would count instead; strength (0..1) is how regular the
     * onsets are at that tempo. Absent if a model found the beats.
     */
    candidates?: { bpm: number; strength: number }[]
  } | null
  /** Times in seconds. */
  beats: number[]
  /** The beats that begin bars; null if there are fewer than two bars. */
  downbeats: { beatsPerBar: number; times: number[]; confidence: number } | null
}

/** An interval belongs to the tempo if it differs from the median by less than this fraction of it. */
const steadiness = 0.1

/**
 * Returns the rhythm of beats and downbeats. Confidence is the share of intervals, or of bars, of the usual length.
 */
export function rhythmOf({ beats, downbeats }: BeatTimes): Rhythm {
  const intervals = beats.slice(1).map((time, index) => time - beats[index]!)
  const usual = [...intervals].sort((one, other) => one - other).at(intervals.length >> 1)
  if (usual === undefined) return { tempo: null, beats, downbeats: null }
  // A pause, or a run of missed beats, counts as the number of beats that fit into it.
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
 * Returns the tempo of the line that fits the beats best, which is more precise than the frames.
 *
 * @param positions the number of each beat, counted from any of them. Default: consecutive numbers
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
