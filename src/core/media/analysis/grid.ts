import { chromaSeconds } from './spectral-features.js'

/**
 * Divides a piece at the given times and, before the first and after the last of them, in steps of their mean length.
 * The parts at both ends are half to one and a half steps long.
 *
 * @param times two or more, in seconds, ascending
 * @returns the borders, from 0 to `end`
 */
export function gridOver(times: readonly number[], end: number): number[] {
  const [first, last] = [times[0]!, times[times.length - 1]!]
  const step = (last - first) / (times.length - 1)
  const before = Math.max(0, Math.ceil(first / step - 1.5))
  const after = Math.max(0, Math.ceil((end - last) / step - 1.5))
  const inner = [
    ...Array.from({ length: before }, (_, i) => first - (before - i) * step),
    ...times,
    ...Array.from({ length: after }, (_, i) => last + (i + 1) * step),
  ].filter((time) => time >= step / 2 && time <= end - step / 2)
  return [0, ...inner, end]
}

/** Evenly spaced borders, for pieces without beats. */
export function evenGrid(stepSeconds: number, end: number): number[] {
  return gridOver([0, stepSeconds], Math.max(end, stepSeconds))
}

/** The mean of the chroma (or timbre) frames between each two borders; if there are none, the nearest frame. */
export function meansBetween(frames: readonly Float32Array[], grid: readonly number[]): Float64Array[] {
  let next = 0
  return grid.slice(1).map((end) => {
    const first = next
    while (next < frames.length && chromaSeconds(next) < end) next++
    const chosen = next > first ? frames.slice(first, next) : frames.slice(Math.max(0, first - 1), Math.max(1, first))
    const sum = new Float64Array(frames[0]?.length ?? 0)
    for (const frame of chosen) frame.forEach((value, i) => (sum[i]! += value / chosen.length))
    return sum
  })
}

/** Scaled to a length of 1; zeros stay zeros. */
export function direction(values: Float64Array): Float64Array {
  const length = Math.hypot(...values)
  return length > 0 ? values.map((value) => value / length) : values
}

export function dot(one: Float64Array, other: Float64Array): number {
  // A plain loop for speed: sections compare millions of pairs.
  let sum = 0
  for (let i = 0; i < one.length; i++) sum += one[i]! * other[i]!
  return sum
}
