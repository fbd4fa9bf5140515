import { pitchNames } from './chord-sequence.js'
import { chordProbabilities, indexOf, type Mode, segmentSeconds } from './chords.js'
import type { Chroma } from './chroma.js'

type Profile = Record<Mode, readonly number[]>

/**
 * Fit of each pitch class to a key of C in written music (D. Temperley, Music and Probability, 2007, table 6.1: the
 * Kostka-Payne corpus).
 */
const writtenProfile: Profile = {
  major: [0.748, 0.06, 0.488, 0.082, 0.67, 0.46, 0.096, 0.715, 0.104, 0.366, 0.057, 0.4],
  minor: [0.712, 0.084, 0.474, 0.618, 0.049, 0.46, 0.105, 0.747, 0.404, 0.067, 0.133, 0.33],
}

/**
 * The same in recordings of dance music, which has loops and few cadences (A. Faraldo et al., Key Estimation in
 * Electronic Dance Music, ECIR 2016).
 */
const recordedProfile: Profile = {
  major: [0.1652, 0.0475, 0.0829, 0.0669, 0.0999, 0.0927, 0.0529, 0.1316, 0.0522, 0.0744, 0.0694, 0.0643],
  minor: [0.1724, 0.0534, 0.0761, 0.1004, 0.0562, 0.0853, 0.0498, 0.1345, 0.0746, 0.05, 0.0919, 0.0555],
}

/** The triads of a key of C except its dominants. */
const triads: Record<Mode, readonly [root: number, mode: Mode][]> = {
  major: [
    [0, 'major'],
    [2, 'minor'],
    [4, 'minor'],
    [5, 'major'],
    [9, 'minor'],
  ],
  minor: [
    [0, 'minor'],
    [3, 'major'],
    [5, 'minor'],
    [8, 'major'],
    [10, 'major'],
  ],
}

const dominantsOf: Record<Mode, readonly Mode[]> = { major: ['major'], minor: ['major', 'minor'] }

/**
 * Weight of each clue, in natural log odds: rounded from a fit to 260 rendered pieces of four styles, half of them
 * distorted, filtered and reverberated, so that right answers are as frequent as the confidence says.
 */
const weights = { written: 2.5, recorded: 4, ownChords: 6, tonicChord: 1, cadences: 4, first: 2 }
/** Number of segments that count as the first chord of a piece. */
const edgeSegments = Math.round(2.2 / segmentSeconds)

export interface Key {
  /** For example `F# minor`. */
  name: string
  tonic: string
  mode: Mode
  /** 0..1: how much likelier this key is than the next candidate. */
  confidence: number
}

/**
 * Estimates the key from several clues: how all tones correlate with its profiles (C. L. Krumhansl, Cognitive
 * Foundations of Musical Pitch, 1990, chapter 4), and, of the likely chords, the share that belongs to the key, the
 * share of its tonic, the share of the changes that lead from its dominant to its tonic, and whether the first is its
 * tonic (key from chords: K. Noland and M. Sandler, Key Estimation Using a Hidden Markov Model, ISMIR 2006). Tones
 * alone confuse a key with its relative key; chords alone fail in music of few chords.
 *
 * @returns undefined if there are no tones
 */
export function estimateKey(chroma: Chroma): Key | undefined {
  const tones = Array.from({ length: 12 }, (_, pitch) => chroma.all.reduce((sum, frame) => sum + frame[pitch]!, 0))
  if (!tones.some((value) => value > 0)) return undefined
  const chords = chordProbabilities(chroma)
  const share = meanOf(chords)
  const first = meanOf(chords.slice(0, edgeSegments))
  const change = changesOf(chords)
  const candidates = (['major', 'minor'] as const).flatMap((mode) =>
    pitchNames.map((tonic, root) => {
      const home = indexOf(root, mode)
      const fits = (profile: Profile) =>
        correlation(
          tones,
          profile[mode].map((_, pitch) => profile[mode][(pitch - root + 12) % 12]!),
        )
      const dominants = dominantsOf[mode].map((its) => indexOf(root + 7, its))
      const others = triads[mode].reduce((sum, [step, its]) => sum + share[indexOf(root + step, its)]!, 0)
      // Minor has two dominants, and a piece uses one of them: a single tone would be the dominant of a minor key.
      const ownChords = others + Math.max(...dominants.map((dominant) => share[dominant]!))
      const cadences = Math.max(...dominants.map((dominant) => change(dominant, home)))
      const odds =
        weights.written * fits(writtenProfile) +
        weights.recorded * fits(recordedProfile) +
        weights.ownChords * ownChords +
        weights.tonicChord * share[home]! +
        weights.cadences * cadences +
        weights.first * first[home]!
      return { tonic, mode, odds }
    }),
  )
  const [best, next] = candidates.sort((one, other) => other.odds - one.odds)
  const sum = candidates.reduce((total, { odds }) => total + Math.exp(odds - best!.odds), 0)
  const confidence = (1 - Math.exp(next!.odds - best!.odds)) / sum
  return { name: `${best!.tonic} ${best!.mode}`, tonic: best!.tonic, mode: best!.mode, confidence }
}

/** Returns the share of all chord changes that lead from one chord to another. */
function changesOf(chords: readonly Float64Array[]): (from: number, to: number) => number {
  const counts = Array.from({ length: 24 }, () => new Float64Array(24))
  let sum = 0
  for (let i = 1; i < chords.length; i++) {
    chords[i - 1]!.forEach((before, from) => {
      // Most chords are next to impossible.
      if (before < 0.01) return
      chords[i]!.forEach((after, to) => {
        if (from === to) return
        counts[from]![to]! += before * after
        sum += before * after
      })
    })
  }
  return (from, to) => (sum > 0 ? counts[from]![to]! / sum : 0)
}

function meanOf(chords: readonly Float64Array[]): Float64Array {
  const sum = new Float64Array(24)
  for (const each of chords) each.forEach((value, chord) => (sum[chord]! += value / chords.length))
  return sum
}

function correlation(one: readonly number[], other: readonly number[]): number {
  const [a, b] = [one, other].map((values) => {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length
    return values.map((value) => value - mean)
  })
  const product = (x: readonly number[], y: readonly number[]) => x.reduce((sum, value, i) => sum + value * y[i]!, 0)
  const size = Math.sqrt(product(a!, a!) * product(b!, b!))
  return size > 0 ? product(a!, b!) / size : 0
}
