import type { Chroma } from './chroma.js'

/** Frames of chroma per segment: 0.37 s. */
const framesPerSegment = 4
export const segmentSeconds = (framesPerSegment * 2048) / 22_050
/** Probability that a chord continues in the next segment. */
const stay = 0.9
/** Factor from the fit of a chord to its log likelihood, and weight of its root in the bass relative to its tones. */
const sharpness = 8
const bassWeight = 0.5
/** A chord of another root may have its fifth in the bass. */
const fifthInBass = 0.3

export type Mode = 'major' | 'minor'

/** The index of a triad, or of a key, in lists of 24. */
export function indexOf(root: number, mode: Mode): number {
  return 2 * ((root + 12) % 12) + (mode === 'minor' ? 1 : 0)
}

/**
 * Probabilities of all major and minor triads in each segment of a piece: from a hidden Markov model in which chords
 * last, fitted to templates of three tones, with the bass apart (T. Fujishima, Realtime Chord Recognition of Musical
 * Sound, ICMC 1999; A. Sheh and D. P. W. Ellis, Chord Segmentation and Recognition using EM-Trained Hidden Markov
 * Models, ISMIR 2003).
 *
 * @returns for each segment 24 numbers that sum to 1, indexed by `indexOf`
 */
export function chordProbabilities({ all, bass }: Chroma): Float64Array[] {
  const fits: Float64Array[] = []
  for (let frame = 0; frame < all.length; frame += framesPerSegment) {
    const [tones, low] = [all, bass].map((frames) => direction(frames.slice(frame, frame + framesPerSegment)))
    fits.push(fitsOf(tones!, low!))
  }
  // The forward and the backward pass over all segments.
  const before: Float64Array[] = []
  for (const fit of fits)
    before.push(shares(product(fit, before.length > 0 ? moved(before[before.length - 1]!) : fit.map(() => 1))))
  let after: Float64Array = new Float64Array(24).fill(1)
  const both: Float64Array[] = []
  for (let i = fits.length - 1; i >= 0; i--) {
    both[i] = shares(product(before[i]!, after))
    after = shares(moved(product(fits[i]!, after)))
  }
  return both
}

function fitsOf(tones: Float64Array, bass: Float64Array): Float64Array {
  const fits = new Float64Array(24).fill(1)
  if (!tones.some((value) => value > 0)) return fits
  for (let root = 0; root < 12; root++) {
    const fifth = (root + 7) % 12
    for (const mode of ['major', 'minor'] as const) {
      const third = (root + (mode === 'major' ? 4 : 3)) % 12
      const likeness = (tones[root]! + tones[third]! + tones[fifth]!) / Math.sqrt(3)
      const inBass = bass[root]! + fifthInBass * bass[fifth]!
      fits[indexOf(root, mode)] = Math.exp(sharpness * (likeness + bassWeight * inBass))
    }
  }
  return fits
}

/** Moves the probabilities on by a segment, forward or back: the chord stays or changes to any other. */
function moved(chances: Float64Array): Float64Array {
  const move = (1 - stay) / (chances.length - 1)
  const sum = total(chances)
  return chances.map((chance) => move * sum + (stay - move) * chance)
}

/** The sum of the frames, scaled to a length of 1. */
function direction(frames: readonly Float32Array[]): Float64Array {
  const sum = new Float64Array(12)
  for (const frame of frames) frame.forEach((value, pitch) => (sum[pitch]! += value))
  const length = Math.hypot(...sum)
  return length > 0 ? sum.map((value) => value / length) : sum
}

function product(one: Float64Array, other: Float64Array): Float64Array {
  return one.map((value, i) => value * other[i]!)
}

function shares(values: Float64Array): Float64Array {
  const sum = total(values)
  return values.map((value) => value / sum)
}

function total(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0)
}
