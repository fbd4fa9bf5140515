import type { AudioStream } from '../../separation/dsp/audio-stream.js'
import { resample } from '../../separation/dsp/resample.js'
import { withChannels } from '../transcode/edits.js'
import { estimateBars, trackBeats } from './beats.js'
import { estimateKey, type Key } from './key.js'
import { analysisRate, frameSeconds, framesPerSecond, spectralFeatures } from './spectral-features.js'
import { estimateTempo, flattened } from './tempo.js'

export interface MusicAnalysis {
  seconds: number
  /** Null if nothing repeats. */
  tempo: { bpm: number; confidence: number } | null
  /** Times in seconds. */
  beats: number[]
  /** The beats that begin bars; null if there are less than two bars. */
  downbeats: { beatsPerBar: number; times: number[]; confidence: number } | null
  /** Null if there are no tones. */
  key: (Key & { tuningCents: number }) | null
  /** Passages of at least half a second below -60 dBFS, in seconds. */
  silence: { start: number; end: number }[]
}

const silenceLevel = 10 ** (-60 / 20)
const shortestSilenceSeconds = 0.5

/** Tempo, beats, bars, key and silence of a stream of any rate and number of channels. Keeps about 2 kB per second. */
export async function analyzeAudio(stream: AudioStream, signal?: AbortSignal): Promise<MusicAnalysis> {
  const { onsets, lowOnsets, levels, chroma, tuningCents, sampleCount } = await spectralFeatures(
    resample(withChannels(stream, 1), analysisRate),
    signal,
  )
  const flat = flattened(onsets)
  const tempo = estimateTempo(flat)
  const beats = tempo ? trackBeats(flat, tempo.bpm) : []
  const bars = estimateBars(beats, flattened(lowOnsets), chroma.all)
  const key = estimateKey(chroma)
  const times = beats.map((beat) => round(frameSeconds(beat)))
  return {
    seconds: sampleCount / analysisRate,
    tempo: tempo && beats.length > 1 ? { bpm: bpmOf(times), confidence: round(tempo.confidence) } : null,
    beats: times,
    downbeats: bars
      ? {
          beatsPerBar: bars.beatsPerBar,
          times: times.filter((_, index) => index % bars.beatsPerBar === bars.firstDownbeat),
          confidence: round(bars.confidence),
        }
      : null,
    key: key ? { ...key, confidence: round(key.confidence), tuningCents } : null,
    silence: silences(levels),
  }
}

/** From a least-squares line through the beats: finer than the frames. */
function bpmOf(times: readonly number[]): number {
  const middle = (times.length - 1) / 2
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length
  let [product, square] = [0, 0]
  times.forEach((time, index) => {
    product += (index - middle) * (time - mean)
    square += (index - middle) ** 2
  })
  return Math.round((60 * square * 100) / product) / 100
}

function silences(levels: Float32Array): MusicAnalysis['silence'] {
  const found: MusicAnalysis['silence'] = []
  let start = 0
  for (let i = 0; i <= levels.length; i++) {
    if (i < levels.length && levels[i] < silenceLevel) continue
    if ((i - start) / framesPerSecond >= shortestSilenceSeconds)
      found.push({ start: round(start / framesPerSecond), end: round(i / framesPerSecond) })
    start = i + 1
  }
  return found
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000
}
