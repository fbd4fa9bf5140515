const names = ['C', 'C#', 'D', 'D#', 'E', 'F', 'F#', 'G', 'G#', 'A', 'A#', 'B']

/** How well each pitch class fits a key of C (D. Temperley, Music and Probability, 2007, table 6.1: from the Kostka-Payne corpus). */
const profiles = {
  major: [0.748, 0.06, 0.488, 0.082, 0.67, 0.46, 0.096, 0.715, 0.104, 0.366, 0.057, 0.4],
  minor: [0.712, 0.084, 0.474, 0.618, 0.049, 0.46, 0.105, 0.747, 0.404, 0.067, 0.133, 0.33],
} as const

export interface Key {
  /** For example `F# minor`. */
  name: string
  tonic: string
  mode: 'major' | 'minor'
  /** 0..1: how much better it fits than the next one. */
  confidence: number
}

/** A lead of this much in correlation is as sure as it gets. */
const clearLead = 0.2

/**
 * The key whose profile the pitch classes correlate with best (C. L. Krumhansl, Cognitive Foundations of Musical Pitch, 1990, chapter 4).
 *
 * @param chroma frames of twelve pitch classes from C on
 * @returns undefined where there are no tones
 */
export function estimateKey(chroma: readonly Float32Array[]): Key | undefined {
  const sums = Array.from({ length: 12 }, (_, pitch) => chroma.reduce((sum, frame) => sum + frame[pitch], 0))
  if (!sums.some((value) => value > 0)) return undefined
  const candidates = (['major', 'minor'] as const).flatMap((mode) =>
    names.map((tonic, root) => {
      const rotated = profiles[mode].map((_, pitch) => profiles[mode][(pitch - root + 12) % 12])
      return { tonic, mode, fit: correlation(sums, rotated) }
    }),
  )
  const [best, next] = candidates.sort((one, other) => other.fit - one.fit)
  const confidence = Math.min(1, (best.fit - next.fit) / clearLead)
  return { name: `${best.tonic} ${best.mode}`, tonic: best.tonic, mode: best.mode, confidence }
}

function correlation(one: readonly number[], other: readonly number[]): number {
  const [a, b] = [one, other].map((values) => {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length
    return values.map((value) => value - mean)
  })
  const product = (x: readonly number[], y: readonly number[]) => x.reduce((sum, value, i) => sum + value * y[i], 0)
  const size = Math.sqrt(product(a, a) * product(b, b))
  return size > 0 ? product(a, b) / size : 0
}
