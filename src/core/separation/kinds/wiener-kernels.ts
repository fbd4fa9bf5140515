import { advance, and, type Code, end, f32, f32x4, f64, f64x2, get, i32, ifLeft, load, loadDoubles, loadSplat, select, set, store, whileLeft } from '../audio/simd-code.js'
import { createSimdModule, valueTypes } from '../audio/simd-module.js'

/** Rows of both channels that the kernels work on, one after another in memory; a row holds the frames of one bin. */
export const wienerPlanes = ['leftRe', 'leftIm', 'rightRe', 'rightIm', 'leftMixture', 'rightMixture', 'leftVoice', 'rightVoice'] as const
type Plane = (typeof wienerPlanes)[number]

/** Sums over the frames of a window: powers of both sources, and their products between the channels. */
export const wienerSums = ['voiceLeft', 'voiceRight', 'voiceRe', 'voiceIm', 'othersLeft', 'othersRight', 'othersRe', 'othersIm'] as const
export type WienerSums = Record<(typeof wienerSums)[number], number>

/**
 * The filter `v1 R1 (v1 R1 + v2 R2 + g)^-1` of one bin and window as a function of the powers `v1` and `v2` of a frame. As the
 * adjugate of a sum of 2 x 2 matrices is the sum of their adjugates, it is
 *
 *     v1 / d * (v1 det(R1) + v2 N + g R1),   d = v1^2 det(R1) + v2^2 det(R2) + v1 v2 tr(N) + g (v1 tr(R1) + v2 tr(R2)) + g^2
 *
 * with `N = R1 adj(R2)`, which lets nothing through that lies where the others lie. Nothing in `d` is negative, so single precision
 * suffices where the determinant of the sum itself would lose all digits, as in music with equal channels.
 */
const filterFields = [
  // Brings magnitudes to the working level: `v = ((scale left)^2 + (scale right)^2) / 2`.
  'scale',
  // det(R1), det(R2), tr(N), g tr(R1), g tr(R2), g^2
  ...(['voiceDeterminant', 'othersDeterminant', 'mixedDeterminant', 'voiceTrace', 'othersTrace', 'floor'] as const),
  // N, row by row.
  ...(['nullLeftRe', 'nullLeftIm', 'nullUpperRe', 'nullUpperIm', 'nullLowerRe', 'nullLowerIm', 'nullRightRe', 'nullRightIm'] as const),
  // g R1: its diagonal and the upper right corner.
  ...(['placeLeft', 'placeRight', 'placeRe', 'placeIm'] as const),
] as const
export type WienerFilter = Record<(typeof filterFields)[number], number>

export interface WienerKernels {
  /** Rows of `bins` bins; also what lies behind them up to a vector's length may be written to. */
  plane(name: Plane): Float32Array
  /** The largest magnitude of each frame since it was set to zero. */
  peaks: Float32Array
  /** Mixture's magnitudes of a row in one channel, which raise the peaks. */
  magnitudes(channel: 'left' | 'right', row: number): void
  /** The magnitudes are those of two planes; both sources have the mixture's phases. */
  sums(row: number, first: number, frames: number): WienerSums
  /** Replaces the mixture's spectra in the window. */
  filter(row: number, first: number, frames: number, by: WienerFilter): void
}

/** Makes the kernels, with memory for so many bins at a time. */
export function createWienerKernels(bins: number, frames: number): WienerKernels {
  const places = memoryPlaces(bins, frames)
  const parameters = [i32Type, i32Type, i32Type]
  const { memory, functions } = createSimdModule(places.end / 4, [
    { name: 'magnitudes', parameters: [...parameters, i32Type, i32Type], results: [], body: magnitudesBody() },
    { name: 'sums', parameters, results: [], locals: [[wienerSums.length + 10, valueTypes.v128]], body: sumsBody(places) },
    { name: 'filter', parameters, results: [], locals: [[12, valueTypes.v128]], body: filterBody(places) },
  ])
  const doubles = new Float64Array(memory.buffer)
  const floatsFrom = (bytes: number, count: number) => memory.subarray(bytes / 4, bytes / 4 + count)
  floatsFrom(places.masks, 8).set(new Float32Array(Int32Array.of(-1, -1, -1, -1, 0, 0, 0, 0).buffer))
  const filterValues = floatsFrom(places.filter, filterFields.length)
  const cell = (row: number, first: number) => places.planes.leftRe + 4 * (row * frames + first)
  /** Ones for what is left behind the last whole vector, whose lanes have so many bytes. */
  const mask = (count: number, lanes: number) => places.masks + 16 - (16 / lanes) * (count % lanes)
  const planes = Object.fromEntries(wienerPlanes.map((name) => [name, floatsFrom(places.planes[name], bins * frames)]))

  return {
    plane: (name) => planes[name],
    peaks: floatsFrom(places.peaks, frames),

    magnitudes(channel, row) {
      const offset = 4 * row * frames
      const [re, im, to] = ([`${channel}Re`, `${channel}Im`, `${channel}Mixture`] as const).map((name) => places.planes[name] + offset)
      functions.magnitudes(re, im, to, places.peaks, frames)
    },

    sums(row, first, count) {
      functions.sums(cell(row, first), count, mask(count, 2))
      const sum = (index: number) => doubles[places.sums / 8 + 2 * index] + doubles[places.sums / 8 + 2 * index + 1]
      return {
        voiceLeft: sum(0), voiceRight: sum(1), voiceRe: sum(2), voiceIm: sum(3),
        othersLeft: sum(4), othersRight: sum(5), othersRe: sum(6), othersIm: sum(7),
      }
    },

    filter(row, first, count, by) {
      filterFields.forEach((field, index) => (filterValues[index] = by[field]))
      functions.filter(cell(row, first), count, mask(count, 4))
    },
  }
}

const i32Type = valueTypes.i32

/** Where the kernels find their data, in bytes. */
interface Places {
  filter: number
  masks: number
  sums: number
  peaks: number
  planes: Record<Plane, number>
  end: number
}

function memoryPlaces(bins: number, frames: number): Places {
  let next = 0
  const take = (floats: number) => {
    const start = next
    // Room for the vector at the end of the last row; a multiple of 16 bytes, but not of what fills a level of the cache.
    next += 16 * (Math.ceil(floats / 4) + 9)
    return start
  }
  return {
    filter: take(filterFields.length),
    masks: take(8),
    sums: take(4 * wienerSums.length),
    peaks: take(frames),
    planes: Object.fromEntries(wienerPlanes.map((name) => [name, take(bins * frames)])) as Record<Plane, number>,
    end: next,
  }
}

// Locals: the parameters, then what the loops keep. A row's frames are taken two (in double precision) or four at a time; what is
// left at the end goes through the same instructions with a mask.

const at = 0
const left = 1
const mask = 2

function locals<Name extends string>(first: number, ...names: Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name, index) => [name, first + index])) as Record<Name, number>
}

/** Of four frames: `to = sqrt(re^2 + im^2)`, and `peaks` its maximum. What it writes behind a row, the next one overwrites. */
function magnitudesBody(): Code {
  const { re, im, to, peaks, frames } = { re: 0, im: 1, to: 2, peaks: 3, frames: 4 }
  const value = (pointer: number) => load(get(pointer), 0)
  const square = (pointer: number) => f32x4.multiply(value(pointer), value(pointer))
  const turn = [
    ...store(get(to), 0, f32x4.squareRoot(f32x4.add(square(re), square(im)))),
    ...store(get(peaks), 0, f32x4.larger(value(peaks), value(to))),
  ]
  const pointers = [re, im, to, peaks].flatMap((pointer) => advance(pointer, 16))
  return [...whileLeft(frames, 4, [...turn, ...pointers]), ...ifLeft(frames, turn), ...end]
}

function sumsBody({ planes, sums }: Places): Code {
  const { add, subtract, multiply, divide, greater, larger, splat } = f64x2
  const total = locals(3, ...wienerSums)
  const it = locals(3 + wienerSums.length, 'leftRe', 'leftIm', 'rightRe', 'rightIm', 'voiceA', 'voiceB', 'restA', 'restB', 'cosine', 'sine')
  const value = (name: Plane) => loadDoubles(get(at), planes[name] - planes.leftRe)
  const count = (name: keyof typeof total, term: Code) => set(total[name], add(get(total[name]), term))
  const zero = splat(f64(0))

  const turn = (counted: (value: Code) => Code): Code => {
    const rest = (mixture: Plane, voice: Plane) => counted(larger(zero, subtract(value(mixture), value(voice))))
    const product = multiply(value('leftMixture'), value('rightMixture'))
    const perProduct = and(divide(splat(f64(1)), product), greater(product, zero))
    const power = (a: number, b: number) => multiply(get(a), get(b))
    return [
      ...(['leftRe', 'leftIm', 'rightRe', 'rightIm'] as const).flatMap((name) => set(it[name], value(name))),
      ...set(it.voiceA, counted(value('leftVoice'))),
      ...set(it.voiceB, counted(value('rightVoice'))),
      ...set(it.restA, rest('leftMixture', 'leftVoice')),
      ...set(it.restB, rest('rightMixture', 'rightVoice')),
      ...set(it.cosine, multiply(perProduct, add(power(it.leftRe, it.rightRe), power(it.leftIm, it.rightIm)))),
      ...set(it.sine, multiply(perProduct, subtract(power(it.leftIm, it.rightRe), power(it.leftRe, it.rightIm)))),
      ...count('voiceLeft', power(it.voiceA, it.voiceA)),
      ...count('voiceRight', power(it.voiceB, it.voiceB)),
      ...count('voiceRe', multiply(power(it.voiceA, it.voiceB), get(it.cosine))),
      ...count('voiceIm', multiply(power(it.voiceA, it.voiceB), get(it.sine))),
      ...count('othersLeft', power(it.restA, it.restA)),
      ...count('othersRight', power(it.restB, it.restB)),
      ...count('othersRe', multiply(power(it.restA, it.restB), get(it.cosine))),
      ...count('othersIm', multiply(power(it.restA, it.restB), get(it.sine))),
    ]
  }
  return [
    ...whileLeft(left, 2, [...turn((value) => value), ...advance(at, 8)]),
    ...ifLeft(left, turn((value) => and(value, load(get(mask), 0)))),
    ...wienerSums.flatMap((name, index) => store(i32(0), sums + 16 * index, get(total[name]))),
    ...end,
  ]
}

function filterBody({ planes, filter }: Places): Code {
  const { add, subtract, multiply, divide, larger, splat } = f32x4
  const it = locals(3, 'a', 'b', 'c', 'd', 'voice', 'others', 'own', 'gain', 'leftRe', 'leftIm', 'rightRe', 'rightIm')
  const value = (name: Plane) => load(get(at), planes[name] - planes.leftRe)
  const gain = (field: keyof WienerFilter) => loadSplat(i32(0), filter + 4 * filterFields.indexOf(field))
  const square = (local: number) => multiply(get(local), get(local))
  const power = (a: number, b: number) => multiply(splat(f32(0.5)), add(square(a), square(b)))
  const positive = (term: Code) => larger(splat(f32(0)), term)
  const sum = (first: Code, ...terms: Code[]) => terms.reduce(add, first)
  const times = (local: number, name: keyof WienerFilter) => multiply(get(local), gain(name))

  // The matrix between the frame's gain and its spectrum.
  const upperLeft = [sum(times(it.others, 'nullLeftRe'), get(it.own), gain('placeLeft')), times(it.others, 'nullLeftIm')]
  const upperRight = [sum(times(it.others, 'nullUpperRe'), gain('placeRe')), sum(times(it.others, 'nullUpperIm'), gain('placeIm'))]
  const lowerLeft = [sum(times(it.others, 'nullLowerRe'), gain('placeRe')), subtract(times(it.others, 'nullLowerIm'), gain('placeIm'))]
  const lowerRight = [sum(times(it.others, 'nullRightRe'), get(it.own), gain('placeRight')), times(it.others, 'nullRightIm')]
  const row = ([aRe, aIm]: Code[], [bRe, bIm]: Code[]) => [
    subtract(add(multiply(aRe, get(it.leftRe)), multiply(bRe, get(it.rightRe))), add(multiply(aIm, get(it.leftIm)), multiply(bIm, get(it.rightIm)))),
    sum(multiply(aRe, get(it.leftIm)), multiply(bRe, get(it.rightIm)), multiply(aIm, get(it.leftRe)), multiply(bIm, get(it.rightRe))),
  ]

  const turn = (kept: (filtered: Code, name: Plane) => Code): Code => [
    ...set(it.a, multiply(gain('scale'), value('leftVoice'))),
    ...set(it.b, multiply(gain('scale'), value('rightVoice'))),
    ...set(it.c, positive(subtract(multiply(gain('scale'), value('leftMixture')), get(it.a)))),
    ...set(it.d, positive(subtract(multiply(gain('scale'), value('rightMixture')), get(it.b)))),
    ...set(it.voice, power(it.a, it.b)),
    ...set(it.others, power(it.c, it.d)),
    ...set(it.own, times(it.voice, 'voiceDeterminant')),
    ...set(
      it.gain,
      divide(
        get(it.voice),
        sum(
          multiply(get(it.voice), sum(get(it.own), times(it.others, 'mixedDeterminant'), gain('voiceTrace'))),
          multiply(get(it.others), sum(times(it.others, 'othersDeterminant'), gain('othersTrace'))),
          gain('floor'),
        ),
      ),
    ),
    ...(['leftRe', 'leftIm', 'rightRe', 'rightIm'] as const).flatMap((name) => set(it[name], value(name))),
    ...[row(upperLeft, upperRight), row(lowerLeft, lowerRight)].flat().flatMap((term, index) => {
      const name = wienerPlanes[index]
      return store(get(at), planes[name] - planes.leftRe, kept(multiply(get(it.gain), term), name))
    }),
  ]
  return [
    ...whileLeft(left, 4, [...turn((filtered) => filtered), ...advance(at, 16)]),
    ...ifLeft(left, turn((filtered, name) => select(filtered, value(name), load(get(mask), 0)))),
    ...end,
  ]
}
