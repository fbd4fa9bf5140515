/** Rows that are copied at a time; other counts take a slower path. */
export const rowCount = 16

/** Rows that are contiguous in one array, element `i` of row `r` at `start + r * pitch + i`, and strided in another. */
export interface RowLayout {
  rows: number
  length: number
  start: number
  /** Not a multiple of 1024, or equal elements of all rows would share a few lines of the first-level cache. */
  pitch: number
  /** In the other array, element `i` of row `r` is at `stridedStart + r * rowStride + i * stride`. */
  stridedStart: number
  rowStride: number
  stride: number
}

// Both functions copy one element of all 16 rows per iteration. This takes a third of the time of an inner loop over
// the rows, which would take as long as the transforms themselves.

/** Copies rows to strided positions. */
export function spreadRows(source: Float32Array, target: Float32Array, layout: RowLayout): void {
  const { rows, length, start, pitch, stridedStart, rowStride, stride } = layout
  if (rows !== rowCount) {
    eachElement(layout, (row, strided) => (target[strided] = source[row]!))
    return
  }
  for (let i = 0; i < length; i++) {
    const s = start + i
    const t = stridedStart + i * stride
    target[t] = source[s]!
    target[t + rowStride] = source[s + pitch]!
    target[t + 2 * rowStride] = source[s + 2 * pitch]!
    target[t + 3 * rowStride] = source[s + 3 * pitch]!
    target[t + 4 * rowStride] = source[s + 4 * pitch]!
    target[t + 5 * rowStride] = source[s + 5 * pitch]!
    target[t + 6 * rowStride] = source[s + 6 * pitch]!
    target[t + 7 * rowStride] = source[s + 7 * pitch]!
    target[t + 8 * rowStride] = source[s + 8 * pitch]!
    target[t + 9 * rowStride] = source[s + 9 * pitch]!
    target[t + 10 * rowStride] = source[s + 10 * pitch]!
    target[t + 11 * rowStride] = source[s + 11 * pitch]!
    target[t + 12 * rowStride] = source[s + 12 * pitch]!
    target[t + 13 * rowStride] = source[s + 13 * pitch]!
    target[t + 14 * rowStride] = source[s + 14 * pitch]!
    target[t + 15 * rowStride] = source[s + 15 * pitch]!
  }
}

/** Copies rows from strided positions. */
export function gatherRows(source: Float32Array, target: Float32Array, layout: RowLayout): void {
  const { rows, length, start, pitch, stridedStart, rowStride, stride } = layout
  if (rows !== rowCount) {
    eachElement(layout, (row, strided) => (target[row] = source[strided]!))
    return
  }
  for (let i = 0; i < length; i++) {
    const t = start + i
    const s = stridedStart + i * stride
    target[t] = source[s]!
    target[t + pitch] = source[s + rowStride]!
    target[t + 2 * pitch] = source[s + 2 * rowStride]!
    target[t + 3 * pitch] = source[s + 3 * rowStride]!
    target[t + 4 * pitch] = source[s + 4 * rowStride]!
    target[t + 5 * pitch] = source[s + 5 * rowStride]!
    target[t + 6 * pitch] = source[s + 6 * rowStride]!
    target[t + 7 * pitch] = source[s + 7 * rowStride]!
    target[t + 8 * pitch] = source[s + 8 * rowStride]!
    target[t + 9 * pitch] = source[s + 9 * rowStride]!
    target[t + 10 * pitch] = source[s + 10 * rowStride]!
    target[t + 11 * pitch] = source[s + 11 * rowStride]!
    target[t + 12 * pitch] = source[s + 12 * rowStride]!
    target[t + 13 * pitch] = source[s + 13 * rowStride]!
    target[t + 14 * pitch] = source[s + 14 * rowStride]!
    target[t + 15 * pitch] = source[s + 15 * rowStride]!
  }
}

function eachElement(
  { rows, length, start, pitch, stridedStart, rowStride, stride }: RowLayout,
  copy: (row: number, strided: number) => void,
): void {
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < length; i++) copy(start + row * pitch + i, stridedStart + row * rowStride + i * stride)
  }
}
