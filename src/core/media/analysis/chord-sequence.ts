import type { Harmony } from './chroma.js'
import { direction, dot, meansBetween } from './grid.js'

export interface Chord {
  /** In seconds. */
  start: number
  end: number
  /** For example `C`, `F#m`, `G7`, `Dmaj7`, `Am7`; `N` for no chord. */
  name: string
}

export const pitchNames = ['C', 'C#', 'D', 'D#', 'E', 'F', 'F#', 'G', 'G#', 'A', 'A#', 'B']
const noChord = 'N'

/** Semitones above the root, by the suffix of the chord's name. */
const qualities: readonly [suffix: string, tones: readonly number[]][] = [
  ['', [0, 4, 7]],
  ['m', [0, 3, 7]],
  ['7', [0, 4, 7, 10]],
  ['maj7', [0, 4, 7, 11]],
  ['m7', [0, 3, 7, 10]],
]

/*
 * These values were fitted to 40 rendered songs on their own (seeds 1 to 40 of benchmarks/analysis/songs.mjs), and to
 * 40 others mixed with drums and voices of other songs; the optima are wide, so the values are rounded.
 */
/** Factor from the fit of a chord to its log likelihood. */
const sharpness = 24
/** Weight of the root in the bass, and of the fifth relative to the root. */
const bassWeight = 0.18
const fifthInBass = 0.3
/** Strengths of the third and the fifth harmonic, relative to their tone. */
const [thirdHarmonic, fifthHarmonic] = [0.18, 0.07]
/** Penalty for a fourth tone, which can only improve the fit. */
const fourthTone = 1
/** Weight of equally strong tones as evidence for no chord; less than 1, so that weak chords are still found. */
const flatWeight = 0.86
/** Tones far below the median are probably noise or an echo: weight of their log ratio beyond a margin. */
const weakWeight = 4
const weakMargin = 0.5
/** Probability that a chord continues over the next border. */
const stay = 0.9

const templates = qualities.flatMap(([suffix, steps]) => pitchNames.map((_, root) => templateOf(root, suffix, steps)))
const flat = direction(new Float64Array(12).fill(1))

/**
 * Returns the chords of a piece: major and minor triads, three kinds of sevenths, or none. Compares the tones between
 * the borders of a grid, and separately the bass, with templates that include overtones, and finds the likeliest
 * sequence by Viterbi's method (A. Sheh and D. P. W. Ellis, Chord Segmentation and Recognition using EM-Trained Hidden
 * Markov Models, ISMIR 2003).
 *
 * @param grid borders in seconds at which chords may change, usually beats
 * @returns chords without gaps over the whole grid
 */
export function chordSequence({ treble, bass }: Harmony, grid: readonly number[]): Chord[] {
  const roots = meansBetween(bass, grid)
  const tones = meansBetween(treble, grid)
  const strengths = tones.map((each) => Math.hypot(...each))
  const median = [...strengths].sort((one, other) => one - other)[strengths.length >> 1]!
  const fits = tones.map((each, i) => {
    const weakness = Math.max(0, Math.log(median / Math.max(1e-9, strengths[i]!)) - weakMargin)
    return fitsOf(direction(each), direction(roots[i]!), weakWeight * weakness)
  })
  const chords: Chord[] = []
  likeliest(fits).forEach((index, i) => {
    const name = templates[index]?.name ?? noChord
    const last = chords[chords.length - 1]
    if (last?.name === name) last.end = grid[i + 1]!
    else chords.push({ start: grid[i]!, end: grid[i + 1]!, name })
  })
  return chords
}

function templateOf(root: number, suffix: string, steps: readonly number[]) {
  const tones = new Float64Array(12)
  for (const step of steps) {
    tones[(root + step) % 12]! += 1
    tones[(root + step + 7) % 12]! += thirdHarmonic
    tones[(root + step + 4) % 12]! += fifthHarmonic
  }
  const penalty = steps.length > 3 ? fourthTone : 0
  return { name: pitchNames[root]! + suffix, root, tones: direction(tones), penalty }
}

/**
 * Log likelihoods of all templates, followed by that of no chord.
 *
 * @param forNone further evidence for no chord
 */
function fitsOf(tones: Float64Array, bass: Float64Array, forNone: number): number[] {
  if (!tones.some((value) => value > 0)) return [...templates.map(() => -Infinity), 0]
  const fits = templates.map(({ root, tones: expected, penalty }) => {
    const inBass = bass[root]! + fifthInBass * bass[(root + 7) % 12]!
    return sharpness * (dot(tones, expected) + bassWeight * inBass) - penalty
  })
  return [...fits, sharpness * flatWeight * dot(tones, flat) + forNone]
}

/** The likeliest path through states that stay or change to any other. */
function likeliest(fits: readonly (readonly number[])[]): number[] {
  const states = templates.length + 1
  const [staying, moving] = [Math.log(stay), Math.log((1 - stay) / (states - 1))]
  let scores = [...(fits[0] ?? [])]
  const origins: number[][] = []
  for (const fit of fits.slice(1)) {
    const best = indexOfLargest(scores)
    const from = scores.map((score, state) => (score + staying >= scores[best]! + moving ? state : best))
    scores = scores.map((score, state) => fit[state]! + Math.max(score + staying, scores[best]! + moving))
    origins.push(from)
  }
  const path = [indexOfLargest(scores)]
  for (const from of origins.reverse()) path.push(from[path[path.length - 1]!]!)
  return fits.length > 0 ? path.reverse() : []
}

function indexOfLargest(values: readonly number[]): number {
  return values.reduce((best, value, i) => (value > values[best]! ? i : best), 0)
}
