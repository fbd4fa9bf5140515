/** Ends of the scale factor bands of a transform (ISO/IEC 11172-3, table B.8), by sample rate. */
const longEnds: Record<number, readonly number[]> = {
  44_100: [4, 8, 12, 16, 20, 24, 30, 36, 44, 52, 62, 74, 90, 110, 134, 162, 196, 238, 288, 342, 418, 576],
  48_000: [4, 8, 12, 16, 20, 24, 30, 36, 42, 50, 60, 72, 88, 106, 128, 156, 190, 230, 276, 330, 384, 576],
  32_000: [4, 8, 12, 16, 20, 24, 30, 36, 44, 54, 66, 82, 102, 126, 156, 194, 240, 296, 364, 448, 550, 576],
}

const shortEnds: Record<number, readonly number[]> = {
  44_100: [4, 8, 12, 16, 22, 30, 40, 52, 66, 84, 106, 136, 192],
  48_000: [4, 8, 12, 16, 22, 28, 38, 50, 64, 80, 100, 126, 192],
  32_000: [4, 8, 12, 16, 22, 30, 42, 58, 78, 104, 138, 180, 192],
}

/** The bands of a granule, in the order in which its values are stored. */
export interface Bands {
  readonly ends: readonly number[]
  /** Number of bands that have scale factors of the first width, and that have any. */
  readonly firstWidths: number
  readonly scaled: number
  /** For each stored value, its index in the transform; undefined if the order is the same. */
  readonly order: Uint16Array | undefined
}

export function longBands(sampleRate: number): Bands {
  return { ends: longEnds[sampleRate]!, firstWidths: 11, scaled: 21, order: undefined }
}

/** Three transforms of 192 values, stored band by band. */
export function shortBands(sampleRate: number): Bands {
  const ends: number[] = []
  const order = new Uint16Array(576)
  let at = 0
  let start = 0
  for (const end of shortEnds[sampleRate]!) {
    for (let window = 0; window < 3; window++) {
      for (let line = start; line < end; line++) order[at++] = 18 * Math.floor(line / 6) + 6 * window + (line % 6)
      ends.push(at)
    }
    start = end
  }
  return { ends, firstWidths: 18, scaled: 36, order }
}
