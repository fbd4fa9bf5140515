import type { BeatLogits } from './beat-logits.js'
import { beatFramesPerSecond } from './log-mel.js'

/** A peak is the highest within this many frames on each side: 70 ms. */
const reach = 3

export interface BeatTimes {
  /** In seconds. */
  beats: number[]
  /** The beats that begin bars. */
  downbeats: number[]
}

/**
 * The peaks with a probability above one half; neighbouring ones are merged at their mean, and a first beat of a bar is
 * moved to the nearest beat.
 */
export function beatTimes({ beat, downbeat }: BeatLogits): BeatTimes {
  const times = (logits: Float32Array) => peaksOf(logits).map((frame) => frame / beatFramesPerSecond)
  const beats = times(beat)
  const nearest = (time: number) =>
    beats.reduce((best, each) => (Math.abs(each - time) < Math.abs(best - time) ? each : best), beats[0]!)
  return { beats, downbeats: beats.length > 0 ? [...new Set(times(downbeat).map(nearest))] : [] }
}

function peaksOf(logits: Float32Array): number[] {
  const peaks: number[] = []
  let together = 1
  logits.forEach((value, frame) => {
    if (!(value > 0) || logits.subarray(Math.max(0, frame - reach), frame + reach + 1).some((other) => other > value))
      return
    const last = peaks.length - 1
    if (last >= 0 && frame - peaks[last]! <= 1) peaks[last]! += (frame - peaks[last]!) / ++together
    else {
      peaks.push(frame)
      together = 1
    }
  })
  return peaks
}
