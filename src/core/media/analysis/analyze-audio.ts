import type { AudioStream } from '../dsp/audio-stream.js'
import { resample } from '../dsp/resample.js'
import type { BeatTracker } from './beats/beat-tracker.js'
import { withChannels } from '../dsp/edits.js'
import { estimateBars, trackBeats } from './beats.js'
import { type Chord, chordSequence } from './chord-sequence.js'
import { segmentSeconds } from './chords.js'
import { evenGrid, gridOver } from './grid.js'
import { estimateKey, type Key } from './key.js'
import { type Rhythm, bpmOf, rhythmOf } from './rhythm.js'
import { findSections, type Section } from './sections.js'
import {
  analysisRate,
  frameSeconds,
  framesPerSecond,
  type SpectralFeatures,
  spectralFeatures,
} from './spectral-features.js'
import { countedBeats } from './octave.js'
import { estimateTempo, flattened, type Tempo } from './tempo.js'

export interface MusicAnalysis extends Rhythm {
  seconds: number
  /** Null if there are no tones. */
  key: (Key & { tuningCents: number }) | null
  /** Chords of the whole piece, which change on beats; empty if it is shorter than a second. */
  chords: Chord[]
  /** Sections of the piece; repeats share a label. Empty if it is shorter than a second. */
  sections: Section[]
  /** Passages of at least half a second below -60 dBFS, in seconds. */
  silence: { start: number; end: number }[]
}

const silenceLevel = 10 ** (-60 / 20)
const shortestSilenceSeconds = 0.5
const shortestHarmonySeconds = 1
const beatsOfUnknownBar = 4
const unknownBarSeconds = 2

/**
 * Returns tempo, beats, bars, key, chords, sections and silence of a stream of any rate and number of channels. Keeps
 * about 17 kB per second of audio.
 *
 * @param tracker finds beats and bars instead of the textbook methods; the caller closes it
 */
export async function analyzeAudio(
  stream: AudioStream,
  { signal, tracker }: { signal?: AbortSignal; tracker?: BeatTracker } = {},
): Promise<MusicAnalysis> {
  const mono = resample(withChannels(stream, 1), analysisRate)
  const features = await spectralFeatures(tracker ? { ...mono, blocks: tracked(mono.blocks, tracker) } : mono, signal)
  const { levels, chroma, tuningCents, sampleCount } = features
  const rhythm = tracker ? rhythmOf(await tracker.finish()) : rhythmOfOnsets(features)
  const key = estimateKey(chroma)
  const seconds = sampleCount / analysisRate
  return {
    seconds,
    ...rhythm,
    key: key ? { ...key, confidence: round(key.confidence), tuningCents } : null,
    ...harmonyOf(features, rhythm, seconds),
    silence: silences(levels),
  }
}

async function* tracked(blocks: AudioStream['blocks'], tracker: BeatTracker): AudioStream['blocks'] {
  for await (const block of blocks) {
    await tracker.add(block.channels[0]!)
    yield block
  }
}

function harmonyOf(
  { harmony, timbre }: SpectralFeatures,
  { beats, downbeats }: Rhythm,
  seconds: number,
): Pick<MusicAnalysis, 'chords' | 'sections'> {
  if (seconds < shortestHarmonySeconds) return { chords: [], sections: [] }
  const byBeat = beats.length > 1 ? gridOver(beats, seconds) : evenGrid(segmentSeconds, seconds)
  const barTimes = downbeats?.times ?? beats.filter((_, index) => index % beatsOfUnknownBar === 0)
  const byBar = barTimes.length > 1 ? gridOver(barTimes, seconds) : evenGrid(unknownBarSeconds, seconds)
  const rounded = <Part extends Chord | Section>(parts: Part[]) =>
    parts.map((part) => ({ ...part, start: round(part.start), end: round(part.end) }))
  return {
    chords: rounded(chordSequence(harmony, byBeat)),
    sections: rounded(findSections(harmony.treble, timbre, byBar)),
  }
}

function rhythmOfOnsets({ onsets, lowOnsets, accents, chroma }: SpectralFeatures): Rhythm {
  const [flat, low] = [flattened(onsets), flattened(lowOnsets)]
  const tempo = estimateTempo(flat)
  const beats = tempo ? beatsAt(tempo.bpm, flat, flattened(accents), low) : []
  const bars = estimateBars(beats, low, chroma.all)
  const times = beats.map((beat) => round(frameSeconds(beat)))
  return {
    tempo: tempo && beats.length > 1 ? withCandidates(bpmOf(times), tempo) : null,
    beats: times,
    downbeats: bars
      ? {
          beatsPerBar: bars.beatsPerBar,
          times: times.filter((_, index) => index % bars.beatsPerBar === bars.firstDownbeat),
          confidence: round(bars.confidence),
        }
      : null,
  }
}

function beatsAt(bpm: number, onsets: Float32Array, accents: Float32Array, lowOnsets: Float32Array): number[] {
  const counted = countedBeats(trackBeats(onsets, bpm), bpm, accents, lowOnsets)
  return counted === 'between' ? trackBeats(onsets, 2 * bpm) : counted
}

function withCandidates(bpm: number, { strengthAt }: Tempo): Rhythm['tempo'] {
  const strength = (of: number) => round(strengthAt(of))
  const [half, double] = [bpm / 2, bpm * 2]
  const other = strengthAt(double) > strengthAt(half) ? double : half
  const candidates = [bpm, other].map((each) => ({ bpm: Math.round(each * 100) / 100, strength: strength(each) }))
  return { bpm, confidence: strength(bpm), candidates }
}

function silences(levels: Float32Array): MusicAnalysis['silence'] {
  const found: MusicAnalysis['silence'] = []
  let start = 0
  for (let i = 0; i <= levels.length; i++) {
    if (i < levels.length && levels[i]! < silenceLevel) continue
    if ((i - start) / framesPerSecond >= shortestSilenceSeconds)
      found.push({ start: round(start / framesPerSecond), end: round(i / framesPerSecond) })
    start = i + 1
  }
  return found
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000
}
