import type { AudioStream } from '../../src/core/media/dsp/audio-stream.js'

export interface Piece {
  bpm: number
  /** For example `F# minor`. */
  key: string
  beatsPerBar: 3 | 4
  bars: number
  drums?: boolean
  /** A hi-hat on every half beat. Default: true, if there are drums. */
  hats?: boolean
  /** Tuning above 440 Hz. */
  cents?: number
}

const names = ['C', 'C#', 'D', 'D#', 'E', 'F', 'F#', 'G', 'G#', 'A', 'A#', 'B']
const rate = 22_050

/**
 * A piece of drums, bass, chords and a melody in the scale, with the times of its beats. A second of silence is on
 * both sides.
 */
export function rendered({ bpm, key, beatsPerBar, bars, drums = true, hats = true, cents = 0 }: Piece) {
  const [tonic = 'C', mode] = key.split(' ')
  const root = names.indexOf(tonic)
  const isMinor = mode === 'minor'
  const scale = isMinor ? [0, 2, 3, 5, 7, 8, 10] : [0, 2, 4, 5, 7, 9, 11]
  // I IV V I, or i VI iv V: degrees of the scale.
  const chords = isMinor ? [0, 5, 3, 4] : [0, 3, 4, 0]
  const beat = 60 / bpm
  const seconds = 2 + bars * beatsPerBar * beat
  const { audio, random, add, tone, stream } = canvas(seconds, cents)
  const degree = (number: number, octave: number) =>
    12 * octave + root + scale[number % 7]! + 12 * Math.floor(number / 7)

  const beats: number[] = []
  const downbeats: number[] = []
  for (let bar = 0; bar < bars; bar++) {
    const chord = chords[bar % 4]!
    for (let index = 0; index < beatsPerBar; index++) {
      const at = 1 + (bar * beatsPerBar + index) * beat
      beats.push(at)
      if (index === 0) {
        downbeats.push(at)
        for (const part of [0, 2, 4]) tone(at, beat * beatsPerBar, degree(chord + part, 5), 0.1)
        tone(at, beat * 2, degree(chord, 3), 0.3)
      }
      tone(at, beat / 2, degree(chord + [0, 2, 4, 2][index]!, 6), 0.08)
      tone(at + beat / 2, beat / 2, degree(chord + [4, 4, 6, 4][Math.floor(random() * 4)]!, 6), 0.05)
      if (!drums) continue
      const isKick = index === 0 || (beatsPerBar === 4 && index === 2)
      if (isKick)
        add(at, 0.15, (t) => 0.6 * Math.exp(-25 * t) * Math.sin(2 * Math.PI * (50 + 60 * Math.exp(-40 * t)) * t))
      else add(at, 0.12, (t) => 0.3 * Math.exp(-30 * t) * (2 * random() - 1))
      if (!hats) continue
      for (const half of [0, 0.5]) add(at + half * beat, 0.04, (t) => 0.08 * Math.exp(-90 * t) * (2 * random() - 1))
    }
  }
  return { stream, audio, beats, downbeats, seconds }
}

/** Audio to draw tones and hits on, tuned `cents` above 440 Hz. */
export function canvas(seconds: number, cents = 0) {
  const audio = new Float32Array(Math.ceil(seconds * rate))
  let seed = 7
  const random = () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647
  const add = (start: number, length: number, sample: (t: number) => number) => {
    const from = Math.round(start * rate)
    for (let i = 0; i < length * rate && from + i < audio.length; i++) audio[from + i]! += sample(i / rate)
  }
  /** Tones are cached, because chords recur. */
  const tones = new Map<string, Float32Array>()
  const tone = (start: number, length: number, midi: number, level: number) => {
    const name = `${length} ${midi}`
    const samples = tones.get(name) ?? toneOf(length, 440 * 2 ** ((midi - 69 + cents / 100) / 12))
    tones.set(name, samples)
    const from = Math.round(start * rate)
    const count = Math.min(samples.length, audio.length - from)
    for (let i = 0; i < count; i++) audio[from + i]! += level * samples[i]!
  }
  const stream: AudioStream = {
    sampleRate: rate,
    channelCount: 1,
    sampleCount: audio.length,
    format: 'rendered',
    blocks: (async function* () {
      for (let from = 0; from < audio.length; from += 10_000) yield { channels: [audio.slice(from, from + 10_000)] }
    })(),
  }
  return { audio, random, add, tone, stream }
}

/** Three decaying partials. */
function toneOf(seconds: number, hertz: number): Float32Array {
  const samples = new Float32Array(Math.ceil(seconds * rate))
  for (let i = 0; i < samples.length; i++) {
    const t = i / rate
    const envelope = Math.min(1, t / 0.005) * Math.exp(-2 * t) * Math.min(1, (seconds - t) / 0.02)
    const angle = 2 * Math.PI * hertz * t
    samples[i] = envelope * (Math.sin(angle) + 0.5 * Math.sin(2 * angle) + 0.25 * Math.sin(3 * angle))
  }
  return samples
}

/** The F-measure of detected times; a time within 70 ms of a true one is a hit. */
export function beatScore(found: readonly number[], beats: readonly number[]): number {
  const free = new Set(beats)
  let hits = 0
  for (const time of found) {
    const match = [...free].find((beat) => Math.abs(beat - time) <= 0.07)
    if (match === undefined) continue
    free.delete(match)
    hits++
  }
  return (2 * hits) / Math.max(1, found.length + beats.length)
}
