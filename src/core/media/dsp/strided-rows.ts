/** Rows that are copied at a time; other counts take a slower path. */
export const rowCount = 16

/** Rows in an array: element `i` of row `r` is at `start + r * pitch + i * stride`. */
export interface Rows {
  start: number
  /** If the stride is 1, not a multiple of 1024: equal elements of all rows would share a few lines of the first cache. */
  pitch: number
  stride: number
}

/**
 * Copies rows of `length` elements to another array, each at once where its elements are adjacent. Otherwise, for 16
 * rows, it copies one element of each per iteration, which takes a third of the time of an inner loop over the rows:
 * that would take as long as the transforms themselves.
 */
export function copyRows(
  source: Float32Array,
  { start, pitch, stride }: Rows,
  target: Float32Array,
  { start: toStart, pitch: toPitch, stride: toStride }: Rows,
  { rows, length }: { rows: number; length: number },
): void {
  if (stride === 1 && toStride === 1) {
    for (let row = 0; row < rows; row++) {
      const from = start + row * pitch
      target.set(source.subarray(from, from + length), toStart + row * toPitch)
    }
    return
  }
  const end = start + length * stride
  if (rows !== rowCount) {
    for (let s = start, t = toStart; s < end; s += stride, t += toStride)
      for (let row = 0; row < rows; row++) target[t + row * toPitch] = source[s + row * pitch]!
    return
  }
  for (let s = start, t = toStart; s < end; s += stride, t += toStride) {
    target[t] = source[s]!
    target[t + toPitch] = source[s + pitch]!
    target[t + 2 * toPitch] = source[s + 2 * pitch]!
    target[t + 3 * toPitch] = source[s + 3 * pitch]!
    target[t + 4 * toPitch] = source[s + 4 * pitch]!
    target[t + 5 * toPitch] = source[s + 5 * pitch]!
    target[t + 6 * toPitch] = source[s + 6 * pitch]!
    target[t + 7 * toPitch] = source[s + 7 * pitch]!
    target[t + 8 * toPitch] = source[s + 8 * pitch]!
    target[t + 9 * toPitch] = source[s + 9 * pitch]!
    target[t + 10 * toPitch] = source[s + 10 * pitch]!
    target[t + 11 * toPitch] = source[s + 11 * pitch]!
    target[t + 12 * toPitch] = source[s + 12 * pitch]!
    target[t + 13 * toPitch] = source[s + 13 * pitch]!
    target[t + 14 * toPitch] = source[s + 14 * pitch]!
    target[t + 15 * toPitch] = source[s + 15 * pitch]!
  }
}
