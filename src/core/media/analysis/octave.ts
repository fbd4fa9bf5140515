import { fastestBpm, slowestBpm } from './tempo.js'

/** Every second beat is dropped if its accents are weaker than this fraction of the others' ... */
const weakest = 0.2
/** ... and those between beats are weaker than this fraction of its own; otherwise it divides time as a beat does. */
const divided = 0.5
/** Midpoints between beats are beats as well if their accents exceed this fraction of the beats'. */
const strongest = 0.8
/** Frames on each side of a beat in which its accent may lie. */
const reach = 3

/**
 * Corrects beats that are counted twice or half as fast as people would, by the loudness of every second beat and of
 * the midpoints between beats. Onsets alone do not tell: a quiet hat that repeats on every half beat is as regular as
 * the drums. The two bounds were found on rendered pieces: in those with the right tempo, every second beat had 0.27 or
 * more, and the midpoints had 0.64 or less.
 *
 * @param beats frames
 * @param accents by frame: the increase of loudness
 * @param lowAccents the same for the bass
 * @returns the beats that count, or `'between'` if another beat lies between each two
 */
export function countedBeats(
  beats: number[],
  bpm: number,
  accents: Float32Array,
  lowAccents: Float32Array,
): number[] | 'between' {
  if (beats.length < 8) return beats
  const between = beats.slice(1).map((beat, index) => (beat + beats[index]!) / 2)
  const share = (of: Float32Array) => mean(of, between) / mean(of, beats)
  if (2 * bpm <= fastestBpm && Math.max(share(accents), share(lowAccents)) > strongest) return 'between'
  const halves = [0, 1].map((parity) => beats.filter((_, index) => index % 2 === parity))
  const [stronger, weaker] = halves
    .map((half) => ({ half, accent: mean(accents, half) }))
    .sort((one, other) => other.accent - one.accent)
  if (!stronger || !weaker || bpm / 2 < slowestBpm) return beats
  const isNone = weaker.accent < weakest * stronger.accent && mean(accents, between) < divided * weaker.accent
  return isNone ? stronger.half : beats
}

/** The mean of the strongest accents near these frames. */
function mean(accents: Float32Array, frames: readonly number[]): number {
  let sum = 0
  for (const frame of frames) {
    const from = Math.max(0, Math.round(frame) - reach)
    sum += accents.subarray(from, Math.round(frame) + reach + 1).reduce((most, value) => Math.max(most, value), 0)
  }
  return sum / frames.length
}
