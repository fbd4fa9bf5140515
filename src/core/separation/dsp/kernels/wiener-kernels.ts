import {
  advance,
  and,
  type Code,
  end,
  f32x4,
  f64,
  f64x2,
  get,
  load,
  loadDoubles,
  promoted,
  set,
  store,
  storeDoubles,
  whileLeft,
} from './simd-code.js'
import { createSimdModule, valueTypes } from './simd-module.js'

/** Rows that a tile has of both channels' spectra: what a tile touches stays in the second-level cache. */
export const tileFrames = 8
export const tilePlanes = ['leftRe', 'leftIm', 'rightRe', 'rightIm'] as const
type TilePlane = (typeof tilePlanes)[number]

/** Over the frames of a window, by bin: powers of both sources, and their products between the channels. */
const sumFields = [
  'voiceLeft',
  'voiceRight',
  'voiceRe',
  'voiceIm',
  'othersLeft',
  'othersRight',
  'othersRe',
  'othersIm',
] as const
type SumField = (typeof sumFields)[number]

/**
 * The filter `v1 R1 (v1 R1 + v2 R2 + g)^-1` of a bin and window as a function of the powers `v1` and `v2` of a frame. As the
 * adjugate of a sum of 2 x 2 matrices is the sum of their adjugates, it is
 *
 *     v1 / d * (v1 det(R1) + v2 N + g R1),   d = v1^2 det(R1) + v2^2 det(R2) + v1 v2 tr(N) + g (v1 tr(R1) + v2 tr(R2)) + g^2
 *
 * with `N = R1 adj(R2)`, which lets nothing through that lies where the others lie. Nothing in `d` is negative, so single precision
 * suffices where the determinant of the sum itself would lose all digits, as in music with equal channels.
 */
const filterFields = [
  // det(R1), det(R2), tr(N), g tr(R1), g tr(R2), g^2
  'voiceDeterminant',
  'othersDeterminant',
  'mixedDeterminant',
  'voiceTrace',
  'othersTrace',
  'floor',
  // N, row by row.
  'nullLeftRe',
  'nullLeftIm',
  'nullUpperRe',
  'nullUpperIm',
  'nullLowerRe',
  'nullLowerIm',
  'nullRightRe',
  'nullRightIm',
  // g R1: its diagonal and the upper right corner.
  'placeLeft',
  'placeRight',
  'placeRe',
  'placeIm',
] as const
type FilterField = (typeof filterFields)[number]

/** Rows hold the bins of one frame, and zeros behind them up to `pitch`. Positions count floats of `memory`. */
export interface WienerKernels {
  memory: Float32Array
  pitch: number
  /** Of a row of the tile. */
  tileRow(plane: TilePlane, row: number): number
  /** Of a row of the voice's magnitudes, of which there is one for each frame of a window. */
  voiceRow(channel: number, frame: number): number
  /** Writes the magnitudes of a row of `re` and `im` to `to`. Returns the largest. */
  magnitudes(re: number, im: number, to: number): number
  sums: Record<SumField, Float64Array>
  filters: Record<FilterField, Float32Array>
  /**
   * Adds to the sums what the tile's first rows hold, times `scale`, and the voice's from frame `first` of the window on. Turns the
   * voice's rows into the powers that `filter` needs.
   */
  addToSums(rows: number, first: number, scale: number): void
  /** Replaces those rows by the vocals. */
  filter(rows: number, first: number): void
}

export function createWienerKernels(bins: number, windowFrames: number): WienerKernels {
  const places = memoryPlaces(bins, windowFrames)
  const { i32: pointer, f32: float, v128 } = valueTypes
  // The filter works at every level; it takes a scale so that both loops have the same locals.
  const overTile = { parameters: [pointer, pointer, pointer, pointer, pointer, float], results: [] }
  const tileVariables = (vectors: number) =>
    [
      [tilePointers, pointer],
      [tilePlanes.length + vectors, v128],
    ] as const
  const { memory, functions } = createSimdModule(places.end, [
    {
      name: 'magnitudes',
      parameters: [pointer, pointer, pointer, pointer],
      results: [float],
      locals: [[1, v128]],
      body: magnitudesBody(),
    },
    {
      name: 'addToSums',
      ...overTile,
      locals: tileVariables(sumsNames.length + sumFields.length),
      body: sumsBody(places),
    },
    {
      name: 'filter',
      ...overTile,
      locals: tileVariables(filterNames.length + filterFields.length),
      body: filterBody(places),
    },
  ])
  const { cells, pitch } = places
  const doubles = new Float64Array(memory.buffer)
  const tileRow = (plane: TilePlane, row: number) =>
    places.tile + (tilePlanes.indexOf(plane) * tileFrames + row) * pitch
  const voiceRow = (channel: number, frame: number) => places.voice + (channel * windowFrames + frame) * pitch
  const fields = <Field extends string, Values>(names: readonly Field[], values: (index: number) => Values) =>
    Object.fromEntries(names.map((name, index) => [name, values(index)])) as Record<Field, Values>

  return {
    memory,
    pitch,
    tileRow,
    voiceRow,
    magnitudes: (re, im, to) => functions.magnitudes(4 * re, 4 * im, 4 * to, cells),
    sums: fields(sumFields, (index) =>
      doubles.subarray(places.sums / 2 + index * pitch, places.sums / 2 + (index + 1) * pitch),
    ),
    filters: fields(filterFields, (index) =>
      memory.subarray(places.filters + index * pitch, places.filters + (index + 1) * pitch),
    ),
    addToSums: (rows, first, scale) =>
      void functions.addToSums(4 * places.tile, 4 * voiceRow(0, first), 4 * places.sums, cells, rows, scale),
    filter: (rows, first) =>
      void functions.filter(4 * places.tile, 4 * voiceRow(0, first), 4 * places.filters, cells, rows, 1),
  }
}

/** Where the kernels find their data, in floats. */
interface Places {
  /** Of a row, without what only keeps rows apart. */
  cells: number
  pitch: number
  tile: number
  voice: number
  voicePlane: number
  sums: number
  filters: number
  end: number
}

function memoryPlaces(bins: number, windowFrames: number): Places {
  const whole = Math.ceil(bins / 4) * 4
  // Nine cache lines more than a multiple of 4 KiB, so that equal places of all rows of a tile fall into different lines.
  const pitch = Math.ceil((whole - 144) / 1024) * 1024 + 144
  const tile = 0
  const voice = tile + tilePlanes.length * tileFrames * pitch
  const voicePlane = windowFrames * pitch
  const sums = voice + 2 * voicePlane
  const filters = sums + 2 * sumFields.length * pitch
  return { cells: whole, pitch, tile, voice, voicePlane, sums, filters, end: filters + filterFields.length * pitch }
}

function locals<Name extends string>(first: number, names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name, index) => [name, first + index])) as Record<Name, number>
}

/** `to = sqrt(re^2 + im^2)` for a row; the largest. */
function magnitudesBody(): Code {
  const { re, im, to, count, peak } = locals(0, ['re', 'im', 'to', 'count', 'peak'])
  const value = (pointer: number) => load(get(pointer), 0)
  const square = (pointer: number) => f32x4.multiply(value(pointer), value(pointer))
  const turn = [
    ...store(get(to), 0, f32x4.squareRoot(f32x4.add(square(re), square(im)))),
    ...set(peak, f32x4.larger(get(peak), value(to))),
    ...[re, im, to].flatMap((pointer) => advance(pointer, 16)),
  ]
  return [...whileLeft(count, 4, turn), ...f32x4.largest(peak), ...end]
}

/** Parameters of both loops over a tile, and their pointers into its rows; vectors follow. */
const tile = locals(0, ['cell', 'voiceCell', 'fields', 'bins', 'rows', 'scale', 'at', 'voiceAt', 'row'])
const tilePointers = 3
const spectrum = locals(9, tilePlanes)
const firstFree = 9 + tilePlanes.length

/** For so many bins at once: `before`, then `turn` for each row, then `after`. A vector holds what a field has of them. */
function overTile(
  { pitch }: Places,
  binsAtOnce: number,
  { before, turn, after }: Record<'before' | 'turn' | 'after', Code>,
): Code {
  const { cell, voiceCell, fields, bins, rows, at, voiceAt, row } = tile
  return whileLeft(bins, binsAtOnce, [
    ...before,
    ...set(at, get(cell)),
    ...set(voiceAt, get(voiceCell)),
    ...set(row, get(rows)),
    ...whileLeft(row, 1, [...turn, ...advance(at, 4 * pitch), ...advance(voiceAt, 4 * pitch)]),
    ...after,
    ...advance(cell, 4 * binsAtOnce),
    ...advance(voiceCell, 4 * binsAtOnce),
    ...advance(fields, 16),
  ])
}

/** Where a plane of the tile lies behind its first one, in bytes. */
const planeBytes = ({ pitch }: Places, plane: number) => 4 * plane * tileFrames * pitch

const sumsNames = [
  'level',
  'mixtureA',
  'mixtureB',
  'voiceA',
  'voiceB',
  'restA',
  'restB',
  'perProduct',
  'cosine',
  'sine',
  'voice',
  'rest',
] as const

/**
 * Both sources have the mixture's phases. In double precision, as the determinants of the sums must be right where they are next to
 * nothing of their terms: in channels that are alike. The powers of both sources take the place of the voice's magnitudes.
 */
function sumsBody(places: Places): Code {
  const { add, subtract, multiply, divide, greater, larger, squareRoot, splat } = f64x2
  const it = locals(firstFree, sumsNames)
  const total = locals(firstFree + sumsNames.length, sumFields)
  const times = (a: number, b: number) => multiply(get(a), get(b))
  const scaled = (value: Code) => multiply(get(it.level), value)
  const magnitude = (re: number, im: number) => squareRoot(add(times(re, re), times(im, im)))
  const rest = (mixture: number, voice: number) => larger(splat(f64(0)), subtract(get(mixture), get(voice)))
  const product = times(it.mixtureA, it.mixtureB)
  const meanSquare = (a: number, b: number) => multiply(splat(f64(0.5)), add(times(a, a), times(b, b)))
  const terms: Record<SumField, Code> = {
    voiceLeft: times(it.voiceA, it.voiceA),
    voiceRight: times(it.voiceB, it.voiceB),
    voiceRe: times(it.voice, it.cosine),
    voiceIm: times(it.voice, it.sine),
    othersLeft: times(it.restA, it.restA),
    othersRight: times(it.restB, it.restB),
    othersRe: times(it.rest, it.cosine),
    othersIm: times(it.rest, it.sine),
  }
  const place = (index: number) => 8 * index * places.pitch
  const loop = overTile(places, 2, {
    before: sumFields.flatMap((name, index) => set(total[name], load(get(tile.fields), place(index)))),
    turn: [
      ...tilePlanes.flatMap((name, plane) =>
        set(spectrum[name], scaled(loadDoubles(get(tile.at), planeBytes(places, plane)))),
      ),
      ...set(it.mixtureA, magnitude(spectrum.leftRe, spectrum.leftIm)),
      ...set(it.mixtureB, magnitude(spectrum.rightRe, spectrum.rightIm)),
      ...set(it.voiceA, scaled(loadDoubles(get(tile.voiceAt), 0))),
      ...set(it.voiceB, scaled(loadDoubles(get(tile.voiceAt), 4 * places.voicePlane))),
      ...set(it.restA, rest(it.mixtureA, it.voiceA)),
      ...set(it.restB, rest(it.mixtureB, it.voiceB)),
      ...set(it.perProduct, and(divide(splat(f64(1)), product), greater(product, splat(f64(0))))),
      ...set(
        it.cosine,
        multiply(
          get(it.perProduct),
          add(times(spectrum.leftRe, spectrum.rightRe), times(spectrum.leftIm, spectrum.rightIm)),
        ),
      ),
      ...set(
        it.sine,
        multiply(
          get(it.perProduct),
          subtract(times(spectrum.leftIm, spectrum.rightRe), times(spectrum.leftRe, spectrum.rightIm)),
        ),
      ),
      ...set(it.voice, times(it.voiceA, it.voiceB)),
      ...set(it.rest, times(it.restA, it.restB)),
      ...sumFields.flatMap((name) => set(total[name], add(get(total[name]), terms[name]))),
      ...storeDoubles(get(tile.voiceAt), 0, meanSquare(it.voiceA, it.voiceB)),
      ...storeDoubles(get(tile.voiceAt), 4 * places.voicePlane, meanSquare(it.restA, it.restB)),
    ],
    after: sumFields.flatMap((name, index) => store(get(tile.fields), place(index), get(total[name]))),
  })
  return [...set(it.level, splat(promoted(tile.scale))), ...loop, ...end]
}

const filterNames = ['voice', 'others', 'own', 'gain'] as const

function filterBody(places: Places): Code {
  const { add, subtract, multiply, divide } = f32x4
  const times = (a: number, b: number) => multiply(get(a), get(b))
  const sumOf = (first: Code, ...terms: Code[]) => terms.reduce(add, first)
  const it = locals(firstFree, filterNames)
  const field = locals(firstFree + filterNames.length, filterFields)
  // The matrix between the frame's gain and its spectrum.
  const upperLeft = [
    sumOf(times(it.others, field.nullLeftRe), get(it.own), get(field.placeLeft)),
    times(it.others, field.nullLeftIm),
  ]
  const upperRight = [
    add(times(it.others, field.nullUpperRe), get(field.placeRe)),
    add(times(it.others, field.nullUpperIm), get(field.placeIm)),
  ]
  const lowerLeft = [
    add(times(it.others, field.nullLowerRe), get(field.placeRe)),
    subtract(times(it.others, field.nullLowerIm), get(field.placeIm)),
  ]
  const lowerRight = [
    sumOf(times(it.others, field.nullRightRe), get(it.own), get(field.placeRight)),
    times(it.others, field.nullRightIm),
  ]
  const { leftRe, leftIm, rightRe, rightIm } = spectrum
  const row = ([aRe, aIm]: Code[], [bRe, bIm]: Code[]) => [
    subtract(
      add(multiply(aRe, get(leftRe)), multiply(bRe, get(rightRe))),
      add(multiply(aIm, get(leftIm)), multiply(bIm, get(rightIm))),
    ),
    sumOf(
      multiply(aRe, get(leftIm)),
      multiply(bRe, get(rightIm)),
      multiply(aIm, get(leftRe)),
      multiply(bIm, get(rightRe)),
    ),
  ]
  const determinant = sumOf(
    multiply(get(it.voice), sumOf(get(it.own), times(it.others, field.mixedDeterminant), get(field.voiceTrace))),
    multiply(get(it.others), add(times(it.others, field.othersDeterminant), get(field.othersTrace))),
    get(field.floor),
  )
  const loop = overTile(places, 4, {
    before: filterFields.flatMap((name, index) => set(field[name], load(get(tile.fields), 4 * index * places.pitch))),
    turn: [
      ...set(it.voice, load(get(tile.voiceAt), 0)),
      ...set(it.others, load(get(tile.voiceAt), 4 * places.voicePlane)),
      ...set(it.own, times(it.voice, field.voiceDeterminant)),
      ...set(it.gain, divide(get(it.voice), determinant)),
      ...tilePlanes.flatMap((name, plane) => set(spectrum[name], load(get(tile.at), planeBytes(places, plane)))),
      ...[...row(upperLeft, upperRight), ...row(lowerLeft, lowerRight)].flatMap((term, plane) =>
        store(get(tile.at), planeBytes(places, plane), multiply(get(it.gain), term)),
      ),
    ],
    after: [],
  })
  return [...loop, ...end]
}
