import { direction, dot, meansBetween } from './grid.js'

export interface Section {
  /** In seconds. */
  start: number
  end: number
  /** `A`, `B` and so on by first appearance; sections that sound alike share a label. */
  label: string
}

/*
 * These values were fitted to 40 rendered songs on their own (seeds 1 to 40 of benchmarks/analysis/songs.mjs), and to
 * 40 others mixed with drums and voices of other songs; rounded.
 */
/** The weight of timbre against harmony. */
const timbreWeight = 0.35
/** Bars on both sides of a border that are compared. */
const reach = 6
const fewestBars = 6
/** Least novelty of a border: how much less alike bars across it are than on each side, in standard deviations. */
const leastNovelty = 0.4
/** Least likeness of sections with the same label, in standard deviations above the mean of any two bars. */
const leastLikeness = 0.9
/** Mean and deviation are taken over at most this many bars, evenly spread, so that the time is not quadratic. */
const mostBarsCompared = 500
const partsPerBar = 4

interface Bar {
  harmony: Float64Array
  timbre: Float64Array
}

/**
 * Finds the sections of a piece and their repeats by the likeness of its bars in harmony and timbre. Borders are where
 * novelty peaks (J. Foote, Automatic Audio Segmentation Using a Measure of Audio Novelty, ICME 2000); sections have the
 * same label if one has the bars of the other in the same order.
 *
 * @param tones frames of chroma
 * @param timbre frames of levels in bands, in step with the chroma
 * @param bars the borders of bars, in seconds
 */
export function findSections(
  tones: readonly Float32Array[],
  timbre: readonly Float32Array[],
  bars: readonly number[],
): Section[] {
  if (tones.length === 0) return []
  const alike = standardized(likenessOf(barsOf(tones, timbre, bars)), bars.length - 1)
  const borders = bordersOf(alike, bars.length - 1)
  const found: { first: number; count: number; label: string }[] = []
  let labels = 0
  for (const [i, first] of borders.slice(0, -1).entries()) {
    const section = { first, count: borders[i + 1]! - first }
    const [best] = found
      .map((earlier) => ({ label: earlier.label, likeness: sectionLikeness(alike, section, earlier) }))
      .sort((one, other) => other.likeness - one.likeness)
    const isKnown = best !== undefined && best.likeness > leastLikeness
    found.push({ ...section, label: isKnown ? best.label : letters(labels++) })
  }
  return found
    .map(({ first, count, label }) => ({ start: bars[first]!, end: bars[first + count]!, label }))
    .reduce<Section[]>((sections, next) => {
      const last = sections[sections.length - 1]
      if (last?.label === next.label) last.end = next.end
      else sections.push(next)
      return sections
    }, [])
}

/** Features relative to the mean of the piece: the harmony of each quarter of a bar, and its timbre. */
function barsOf(tones: readonly Float32Array[], timbre: readonly Float32Array[], grid: readonly number[]): Bar[] {
  const quarters = grid
    .slice(1)
    .flatMap((end, i) => Array.from({ length: partsPerBar }, (_, q) => grid[i]! + (q / partsPerBar) * (end - grid[i]!)))
  const parts = meansBetween(tones, [...quarters, grid[grid.length - 1]!]).map(direction)
  const harmonies = grid
    .slice(1)
    .map((_, i) => Float64Array.from(parts.slice(partsPerBar * i, partsPerBar * (i + 1)).flatMap((part) => [...part])))
  const timbres = centered(meansBetween(timbre, grid))
  const spread = Math.sqrt(timbres.reduce((sum, each) => sum + dot(each, each), 0) / timbres.length) || 1
  return centered(harmonies.map(direction)).map((harmony, i) => ({
    harmony: direction(harmony),
    timbre: timbres[i]!.map((value) => value / spread),
  }))
}

function centered(vectors: readonly Float64Array[]): Float64Array[] {
  const mean = vectors[0]!.map((_, i) => vectors.reduce((sum, vector) => sum + vector[i]!, 0) / vectors.length)
  return vectors.map((vector) => vector.map((value, i) => value - mean[i]!))
}

type Likeness = (one: number, other: number) => number

/** Likeness in standard deviations above the mean of bars that are not neighbours. */
function standardized(likeness: Likeness, count: number): Likeness {
  const step = Math.ceil(count / mostBarsCompared)
  let [sum, squares, pairs] = [0, 0, 0]
  for (let one = 0; one < count; one += step)
    for (let other = one + Math.max(step, 3); other < count; other += step) {
      const value = likeness(one, other)
      sum += value
      squares += value ** 2
      pairs++
    }
  const mean = sum / Math.max(1, pairs)
  const deviation = Math.sqrt(Math.max(0, squares / Math.max(1, pairs) - mean ** 2)) || 1
  return (one, other) => (likeness(one, other) - mean) / deviation
}

function likenessOf(bars: readonly Bar[]): Likeness {
  return (one, other) => {
    const [a, b] = [bars[one]!, bars[other]!]
    let squares = 0
    for (let i = 0; i < a.timbre.length; i++) squares += (a.timbre[i]! - b.timbre[i]!) ** 2
    return (1 - timbreWeight) * dot(a.harmony, b.harmony) + timbreWeight * (1 - Math.sqrt(squares))
  }
}

/** The first bar of each section, followed by the number of bars. */
function bordersOf(alike: Likeness, count: number): number[] {
  /** Compares a bar with neighbours too: where a pattern of two or four bars repeats, there is no border. */
  const nearest = (one: number, other: number) =>
    Math.max(
      ...[-2, -1, 0, 1].map((by) => (other + by >= 0 && other + by < count ? alike(one, other + by) : -Infinity)),
    )
  const noveltyAt = (border: number) => {
    const size = Math.min(reach, border, count - border)
    const indices = [...Array(size).keys()]
    const meanOf = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
    const pairs = indices.flatMap((i) => indices.map((j) => [i, j] as const))
    const within = pairs.flatMap(([i, j]) =>
      i === j ? [] : [nearest(border - 1 - i, border - 1 - j), nearest(border + i, border + j)],
    )
    return meanOf(within) - meanOf(pairs.map(([i, j]) => nearest(border - 1 - i, border + j)))
  }
  const candidates = Array.from({ length: Math.max(0, count - 2 * fewestBars + 1) }, (_, i) => i + fewestBars)
    .map((border) => ({ border, novelty: noveltyAt(border) }))
    .filter(({ novelty }) => novelty > leastNovelty)
    .sort((one, other) => other.novelty - one.novelty)
  const borders: number[] = []
  for (const { border } of candidates)
    if (borders.every((other) => Math.abs(other - border) >= fewestBars)) borders.push(border)
  return [0, ...borders.sort((one, other) => one - other), count]
}

/** Likeness of the shorter section to the best-fitting part of the longer one, bar by bar. */
function sectionLikeness(
  alike: Likeness,
  one: { first: number; count: number },
  other: { first: number; count: number },
): number {
  const [short, long] = one.count <= other.count ? [one, other] : [other, one]
  let best = -Infinity
  for (let offset = 0; offset <= long.count - short.count; offset++) {
    let sum = 0
    for (let i = 0; i < short.count; i++) sum += alike(short.first + i, long.first + offset + i)
    best = Math.max(best, sum / short.count)
  }
  return best
}

/** A to Z, then AA and so on. */
function letters(index: number): string {
  return (index >= 26 ? letters(Math.floor(index / 26) - 1) : '') + String.fromCodePoint(65 + (index % 26))
}
