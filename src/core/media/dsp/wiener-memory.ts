import { createWienerKernels, filterFields, sumFields } from './kernels/wiener-kernels.js'

/** Rows of each plane of a tile: few enough for all data of a tile to stay in the second-level cache. */
export const tileFrames = 8
export const tilePlanes = ['leftRe', 'leftIm', 'rightRe', 'rightIm'] as const
type TilePlane = (typeof tilePlanes)[number]

export type WienerMemory = ReturnType<typeof createWienerMemory>

/**
 * The kernels with a memory for one tile and for the voice's magnitudes in one window. Offsets count floats of
 * `memory`.
 */
export function createWienerMemory(bins: number, windowFrames: number) {
  const offsets = wienerOffsets(bins, windowFrames)
  const { cells, pitch, tile, tilePlane, voicePlane } = offsets
  const { memory, magnitudes, addToSums, filter } = createWienerKernels(offsets.end)
  const doubles = new Float64Array(memory.buffer)
  const voiceRow = (channel: number, frame: number) => offsets.voice + channel * voicePlane + frame * pitch
  const fields = <Field extends string, Values>(names: readonly Field[], values: (index: number) => Values) =>
    Object.fromEntries(names.map((name, index) => [name, values(index)])) as Record<Field, Values>

  return {
    memory,
    /** Floats from one row to the next. */
    pitch,
    /** Offset of a row of the tile. */
    tileRow: (plane: TilePlane, row: number) => tile + tilePlanes.indexOf(plane) * tilePlane + row * pitch,
    /** Offset of a row of the voice's magnitudes; there is one row for each frame of a window. */
    voiceRow,
    /** Writes the magnitudes of a row of `re` and `im` to `to`. Returns the largest. */
    magnitudes: (re: number, im: number, to: number) => magnitudes(re, im, to, cells),
    sums: fields(sumFields, (index) =>
      doubles.subarray(offsets.sums / 2 + index * pitch, offsets.sums / 2 + (index + 1) * pitch),
    ),
    filters: fields(filterFields, (index) =>
      memory.subarray(offsets.filters + index * pitch, offsets.filters + (index + 1) * pitch),
    ),
    /** Adds the tile's first rows, and the voice from frame `first` of the window on, to `sums`. */
    addToSums: (rows: number, first: number, scale: number) =>
      addToSums(tile, tilePlane, voiceRow(0, first), voicePlane, offsets.sums, pitch, cells, rows, scale),
    /** Replaces the tile's first rows by the vocals. */
    filter: (rows: number, first: number) =>
      filter(tile, tilePlane, voiceRow(0, first), voicePlane, offsets.filters, pitch, cells, rows),
  }
}

function wienerOffsets(bins: number, windowFrames: number) {
  const cells = Math.ceil(bins / 4) * 4
  // Nine cache lines more than a multiple of 4 KiB, so that equal bins of all rows of a tile fall into different lines.
  const pitch = Math.ceil((cells - 144) / 1024) * 1024 + 144
  const tile = 0
  const tilePlane = tileFrames * pitch
  const voice = tile + tilePlanes.length * tilePlane
  const voicePlane = windowFrames * pitch
  const sums = voice + 2 * voicePlane
  const filters = sums + 2 * sumFields.length * pitch
  return { cells, pitch, tile, tilePlane, voice, voicePlane, sums, filters, end: filters + filterFields.length * pitch }
}
