import { median, type StemScores } from './scores.js'
import type { MethodScores, SongEvaluation } from './evaluate.js'

/** Scores of one method over all songs. NaN if no song has one. */
export interface MethodSummary {
  method: string
  /** Mean uSDR and SI-SDR, median cSDR; each over the songs that have one. */
  vocals: StemScores
  accompaniments: StemScores
  /** Means over the songs, in dB. */
  improvement: { vocals: number; accompaniments: number }
  falseVocals: number
  /** The largest over all songs. */
  sumError: number
  /** Seconds of work for a second of audio, and its inverse; absent for baselines. */
  realTimeFactor?: number
  speed?: number
}

/** One summary for each method, in their order. */
export function summarize(songs: readonly SongEvaluation[]): MethodSummary[] {
  const methods = songs[0]?.methods ?? []
  return methods.map(({ method }, index) => {
    const scores = songs.map((song) => song.methods[index]!)
    const mean = (value: (scores: MethodScores) => number) => meanOf(scores.map(value).filter(Number.isFinite))
    const stem = (name: 'vocals' | 'accompaniments'): StemScores => ({
      uSdr: mean((each) => each[name].uSdr),
      cSdr: median(scores.map((each) => each[name].cSdr).filter(Number.isFinite)),
      siSdr: mean((each) => each[name].siSdr),
    })
    const seconds = songs.reduce((sum, song) => sum + song.seconds, 0)
    const workSeconds = scores.reduce((sum, each) => sum + (each.workSeconds ?? NaN), 0)
    return {
      method,
      vocals: stem('vocals'),
      accompaniments: stem('accompaniments'),
      improvement: {
        vocals: mean((each) => each.improvement.vocals),
        accompaniments: mean((each) => each.improvement.accompaniments),
      },
      falseVocals: mean((each) => each.falseVocals),
      sumError: Math.max(...scores.map((each) => each.sumError)),
      ...(Number.isNaN(workSeconds) ? {} : { realTimeFactor: workSeconds / seconds, speed: seconds / workSeconds }),
    }
  })
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
