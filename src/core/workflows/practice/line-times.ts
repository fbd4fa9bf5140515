import { cleanText } from '../../media/tags/audio-tags.js'
import type { Phrase } from './voice-activity.js'

/** A written line of a song. */
export interface LyricLine {
  text: string
  /** Whether the line begins a verse. */
  beginsVerse: boolean
}

export interface TimedLine extends Phrase {
  text: string
}

const stepSeconds = 0.05
const mostSteps = 4000
const leastStepsOfLine = 8
/** Largest factor by which a line may be longer or shorter than expected. */
const longestStretch = 4
/** Price of a border in the middle of a phrase; a line twice as long as expected costs 0.48. */
const cutPrice = 0.6
const versePauseSeconds = 2
const linePauseSeconds = 0.6
/** Allows for rounding errors in sums of times. */
const tolerance = 1e-6

/** The lines of a text: empty lines and headings such as `[Chorus]` begin a verse and are not sung. */
export function lyricLines(text: string): LyricLine[] {
  const lines: LyricLine[] = []
  let beginsVerse = true
  for (const line of text.split(/\r\n?|\n/).map((each) => cleanText(each).replace(/\s+/g, ' '))) {
    const isSung = /[\p{L}\p{N}]/u.test(line) && !/^\[.*\]$/.test(line)
    if (isSung) lines.push({ text: line, beginsVerse })
    beginsVerse = !isSung
  }
  return lines
}

/**
 * Estimates when each line is sung: the phrases are divided among the lines in order, by their numbers of letters,
 * preferably at pauses, and at long pauses between verses. The sung words are not recognized.
 *
 * @returns an empty array if nobody sings
 */
export function lineTimes(lines: readonly LyricLine[], phrases: readonly Phrase[]): TimedLine[] {
  const voiced = phrases.reduce((sum, { start, end }) => sum + end - start, 0)
  if (lines.length === 0 || voiced === 0) return []
  const steps = Math.max(leastStepsOfLine * lines.length, Math.min(mostSteps, Math.round(voiced / stepSeconds)))
  const { positions, pauses } = grid(phrases, steps, voiced / steps)
  const borders = bestBorders(lines, pauses).map((border) => positions[border]!)
  return lines.map(({ text }, index) => ({
    text,
    start: timeAt(phrases, borders[index]!, 'start'),
    end: timeAt(phrases, borders[index + 1]!, 'end'),
  }))
}

/**
 * The cheapest borders between lines, by dynamic programming, in steps of voiced time.
 *
 * @param pauses seconds of silence at each step, the last of which is the end
 */
function bestBorders(lines: readonly LyricLine[], pauses: Float64Array): number[] {
  const steps = pauses.length - 1
  const weights = lines.map(({ text }) => 2 + (text.match(/[\p{L}\p{N}]/gu)?.length ?? 0))
  const whole = weights.reduce((sum, weight) => sum + weight, 0)
  let prices = new Float64Array(steps + 1).fill(Infinity)
  prices[0] = 0
  const before: Int32Array[] = []
  for (const [index, weight] of weights.entries()) {
    const expected = (weight / whole) * steps
    const [least, most] = [Math.max(1, Math.floor(expected / longestStretch)), Math.ceil(expected * longestStretch)]
    const lengthPrices = Float64Array.from({ length: most + 1 }, (_, length) => Math.log(length / expected) ** 2)
    const next = lines[index + 1]
    const pauseSeconds = next?.beginsVerse ? versePauseSeconds : linePauseSeconds
    const [total, from] = [new Float64Array(steps + 1).fill(Infinity), new Int32Array(steps + 1)]
    // The last line ends where the singing does.
    for (let end = next ? 1 : steps; end <= steps; end++) {
      for (let length = least; length <= Math.min(most, end); length++) {
        const price = prices[end - length]! + lengthPrices[length]!
        if (price < total[end]!) [total[end], from[end]] = [price, end - length]
      }
      if (next) total[end]! += cutPrice * (1 - Math.min(1, pauses[end]! / pauseSeconds))
    }
    prices = total
    before.push(from)
  }
  const borders = [steps]
  for (const from of before.reverse()) borders.unshift(from[borders[0]!]!)
  return borders
}

/** Steps of voiced time, with their positions and pauses. The step nearest to the end of a phrase is moved to it. */
function grid(phrases: readonly Phrase[], steps: number, step: number) {
  const positions = Float64Array.from({ length: steps + 1 }, (_, index) => index * step)
  const pauses = new Float64Array(steps + 1)
  let position = 0
  for (const [index, { start, end }] of phrases.entries()) {
    position += end - start
    const at = Math.round(position / step)
    const pause = (phrases[index + 1]?.start ?? end) - end
    if (pause < pauses[at]!) continue
    pauses[at] = pause
    positions[at] = position
  }
  return { positions, pauses }
}

/** The time at a position in voiced time; at a pause, its end for starts and its start for ends. */
function timeAt(phrases: readonly Phrase[], position: number, side: 'start' | 'end'): number {
  let passed = 0
  for (const { start, end } of phrases) {
    const length = end - start
    const rest = position - passed
    if (side === 'start' ? rest < length - tolerance : rest <= length + tolerance) return start + Math.min(rest, length)
    passed += length
  }
  return phrases.at(-1)?.end ?? 0
}
