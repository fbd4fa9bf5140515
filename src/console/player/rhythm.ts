import type { MusicAnalysis } from '../../core/media/analysis/analyze-audio.js'
import { clickSound } from '../../core/media/dsp/click-sound.js'
import type { PcmSource } from '../sources/pcm-source.js'
import type { CountIn, Loop } from './player.js'
import { sampleAt } from '../sources/sample-at.js'

/** Rhythm of a song, as the analysis has found it. */
export interface SongRhythm {
  bpm?: number
  /** For example `F# minor`. */
  key?: string
  /** Seconds. */
  beats: number[]
  /** The beats that begin bars. */
  bars: number[]
  beatsPerBar: number
  /** Absent in data that earlier versions have kept. */
  chords?: MusicAnalysis['chords']
}

const usualBar = 4
/** Tolerance for a click that is early, in seconds. */
const almost = 0.001

/** The fields of a report of `service/analyze` that the player uses. */
export type AnalysisReport = Pick<MusicAnalysis, 'tempo' | 'key' | 'beats' | 'downbeats' | 'chords'>

export function rhythmOf({ tempo, key, beats, downbeats, chords }: AnalysisReport): SongRhythm {
  const { times = [], beatsPerBar = usualBar } = downbeats ?? {}
  return { bpm: tempo?.bpm, key: key?.name, beats, bars: times, beatsPerBar, chords }
}

export function rhythmWords({ bpm, key }: SongRhythm): string {
  return [bpm === undefined ? 'No steady beat' : `${Math.round(bpm)} bpm`, ...(key ? [key] : [])].join(' · ')
}

/** The loop from beat to beat, at least one long. */
export function onBeats({ from, to }: Loop, { beats }: SongRhythm): Loop {
  if (beats.length < 2) return { from, to }
  const first = Math.min(nearest(beats, from), beats.length - 2)
  const last = Math.max(nearest(beats, to), first + 1)
  return { from: sampleAt(beats, first), to: sampleAt(beats, last) }
}

/** A click at each beat, as a track of the player. */
export function clicksOf({ beats, bars }: Pick<SongRhythm, 'beats' | 'bars'>, like: PcmSource): PcmSource {
  const { sampleRate } = like
  const [accent, beat] = [clickSound('accent', sampleRate), clickSound('beat', sampleRate)]
  const accented = new Set(bars)
  return {
    sampleRate,
    frames: like.frames,
    async read(fromFrame, frames) {
      const plane = new Float32Array(frames)
      for (const time of beats) {
        const sound = accented.has(time) ? accent : beat
        const at = Math.round(time * sampleRate) - fromFrame
        if (at >= frames || at + sound.length <= 0) continue
        plane.set(sound.subarray(Math.max(0, -at), frames - at), Math.max(0, at))
      }
      return [plane]
    },
  }
}

/** Count-in of one bar before a position, in the tempo of and in time with the following beats. */
export function countInTo(position: number, { beats, bars, beatsPerBar }: SongRhythm, like: PcmSource): CountIn {
  const next = beats.findIndex((time) => time >= position - almost)
  const index = Math.max(0, Math.min(next < 0 ? beats.length : next, beats.length - 2))
  const beat = sampleAt(beats, index)
  const length = sampleAt(beats, index + 1) - beat
  const seconds = beatsPerBar * length
  // Seconds to the first beat of the song that is heard.
  const ahead = beat - position + Math.max(0, Math.ceil((position - beat) / length - almost)) * length + seconds
  const toBar = Math.max(
    0,
    beats.slice(index).findIndex((time) => bars.includes(time)),
  )
  const clicks = Array.from({ length: beatsPerBar }, (_, at) => ahead - (beatsPerBar - at) * length)
  const accents = clicks.filter((_, at) => (beatsPerBar - at + toBar) % beatsPerBar === 0)
  return { seconds, source: clicksOf({ beats: clicks, bars: accents }, { ...like, frames: Infinity }) }
}

/** Index of the nearest value in an ascending list. */
function nearest(values: readonly number[], value: number): number {
  let best = 0
  for (let index = 1; index < values.length; index++)
    if (Math.abs(sampleAt(values, index) - value) < Math.abs(sampleAt(values, best) - value)) best = index
  return best
}
