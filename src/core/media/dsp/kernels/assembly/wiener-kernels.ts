import { at, double, float, vector } from './parts/memory'

// See `WienerKernels` in `../wiener-kernels.ts` for the functions, the fields of both records and their order,
// and `plainWienerKernels` in the tests for the same in plain TypeScript.

export function magnitudes(re: usize, im: usize, to: usize, bins: i32): f32 {
  re = at(re)
  im = at(im)
  to = at(to)
  let peak = f32x4.splat(0)
  for (; bins > 0; bins -= 4) {
    const a = v128.load(re)
    const b = v128.load(im)
    const magnitude = f32x4.sqrt(f32x4.add(f32x4.mul(a, a), f32x4.mul(b, b)))
    v128.store(to, magnitude)
    peak = f32x4.pmax(peak, magnitude)
    re += vector
    im += vector
    to += vector
  }
  return max(
    max(f32x4.extract_lane(peak, 0), f32x4.extract_lane(peak, 1)),
    max(f32x4.extract_lane(peak, 2), f32x4.extract_lane(peak, 3)),
  )
}

/** In double precision, two bins at a time. */
export function addToSums(
  tile: usize,
  tilePlane: usize,
  voice: usize,
  voicePlane: usize,
  sums: usize,
  pitch: usize,
  bins: i32,
  rows: i32,
  scale: f32,
): void {
  const rowBytes = pitch * float
  const planeBytes = tilePlane * float
  const channelBytes = voicePlane * float
  const fieldBytes = pitch * double
  const level = f64x2.splat(<f64>scale)
  const zero = f64x2.splat(0)
  tile = at(tile)
  voice = at(voice)
  sums = at(sums)
  for (; bins > 0; bins -= 2) {
    let field = sums
    let voiceLeft = v128.load(field)
    let voiceRight = v128.load((field += fieldBytes))
    let voiceRe = v128.load((field += fieldBytes))
    let voiceIm = v128.load((field += fieldBytes))
    let othersLeft = v128.load((field += fieldBytes))
    let othersRight = v128.load((field += fieldBytes))
    let othersRe = v128.load((field += fieldBytes))
    let othersIm = v128.load((field += fieldBytes))
    let mixtureAt = tile
    let voiceAt = voice
    for (let row = rows; row > 0; row--) {
      const leftRe = f64x2.mul(level, loadDoubles(mixtureAt))
      const leftIm = f64x2.mul(level, loadDoubles(mixtureAt + planeBytes))
      const rightRe = f64x2.mul(level, loadDoubles(mixtureAt + 2 * planeBytes))
      const rightIm = f64x2.mul(level, loadDoubles(mixtureAt + 3 * planeBytes))
      const mixtureA = f64x2.sqrt(f64x2.add(f64x2.mul(leftRe, leftRe), f64x2.mul(leftIm, leftIm)))
      const mixtureB = f64x2.sqrt(f64x2.add(f64x2.mul(rightRe, rightRe), f64x2.mul(rightIm, rightIm)))
      const voiceA = f64x2.mul(level, loadDoubles(voiceAt))
      const voiceB = f64x2.mul(level, loadDoubles(voiceAt + channelBytes))
      const othersA = f64x2.pmax(zero, f64x2.sub(mixtureA, voiceA))
      const othersB = f64x2.pmax(zero, f64x2.sub(mixtureB, voiceB))

      // The angle between the channels, which both sources have; zero where a channel is silent.
      const product = f64x2.mul(mixtureA, mixtureB)
      const perProduct = v128.and(f64x2.div(f64x2.splat(1), product), f64x2.gt(product, zero))
      const cosine = f64x2.mul(perProduct, f64x2.add(f64x2.mul(leftRe, rightRe), f64x2.mul(leftIm, rightIm)))
      const sine = f64x2.mul(perProduct, f64x2.sub(f64x2.mul(leftIm, rightRe), f64x2.mul(leftRe, rightIm)))
      const voiceProduct = f64x2.mul(voiceA, voiceB)
      const othersProduct = f64x2.mul(othersA, othersB)

      voiceLeft = f64x2.add(voiceLeft, f64x2.mul(voiceA, voiceA))
      voiceRight = f64x2.add(voiceRight, f64x2.mul(voiceB, voiceB))
      voiceRe = f64x2.add(voiceRe, f64x2.mul(voiceProduct, cosine))
      voiceIm = f64x2.add(voiceIm, f64x2.mul(voiceProduct, sine))
      othersLeft = f64x2.add(othersLeft, f64x2.mul(othersA, othersA))
      othersRight = f64x2.add(othersRight, f64x2.mul(othersB, othersB))
      othersRe = f64x2.add(othersRe, f64x2.mul(othersProduct, cosine))
      othersIm = f64x2.add(othersIm, f64x2.mul(othersProduct, sine))
      storeDoubles(voiceAt, meanSquare(voiceA, voiceB))
      storeDoubles(voiceAt + channelBytes, meanSquare(othersA, othersB))
      mixtureAt += rowBytes
      voiceAt += rowBytes
    }
    field = sums
    v128.store(field, voiceLeft)
    v128.store((field += fieldBytes), voiceRight)
    v128.store((field += fieldBytes), voiceRe)
    v128.store((field += fieldBytes), voiceIm)
    v128.store((field += fieldBytes), othersLeft)
    v128.store((field += fieldBytes), othersRight)
    v128.store((field += fieldBytes), othersRe)
    v128.store((field += fieldBytes), othersIm)
    tile += 2 * float
    voice += 2 * float
    sums += 2 * double
  }
}

/** In single precision, four bins at a time. */
export function filter(
  tile: usize,
  tilePlane: usize,
  voice: usize,
  voicePlane: usize,
  filters: usize,
  pitch: usize,
  bins: i32,
  rows: i32,
): void {
  const rowBytes = pitch * float
  const planeBytes = tilePlane * float
  const channelBytes = voicePlane * float
  tile = at(tile)
  voice = at(voice)
  filters = at(filters)
  for (; bins > 0; bins -= 4) {
    let field = filters
    const voiceDeterminant = v128.load(field)
    const othersDeterminant = v128.load((field += rowBytes))
    const mixedDeterminant = v128.load((field += rowBytes))
    const voiceTrace = v128.load((field += rowBytes))
    const othersTrace = v128.load((field += rowBytes))
    const floor = v128.load((field += rowBytes))
    const nullLeftRe = v128.load((field += rowBytes))
    const nullLeftIm = v128.load((field += rowBytes))
    const nullUpperRe = v128.load((field += rowBytes))
    const nullUpperIm = v128.load((field += rowBytes))
    const nullLowerRe = v128.load((field += rowBytes))
    const nullLowerIm = v128.load((field += rowBytes))
    const nullRightRe = v128.load((field += rowBytes))
    const nullRightIm = v128.load((field += rowBytes))
    const guardLeft = v128.load((field += rowBytes))
    const guardRight = v128.load((field += rowBytes))
    const guardRe = v128.load((field += rowBytes))
    const guardIm = v128.load((field += rowBytes))
    let mixtureAt = tile
    let voiceAt = voice
    for (let row = rows; row > 0; row--) {
      const voicePower = v128.load(voiceAt)
      const others = v128.load(voiceAt + channelBytes)
      const own = f32x4.mul(voicePower, voiceDeterminant)
      const determinant = f32x4.add(
        f32x4.add(
          f32x4.mul(voicePower, f32x4.add(f32x4.add(own, f32x4.mul(others, mixedDeterminant)), voiceTrace)),
          f32x4.mul(others, f32x4.add(f32x4.mul(others, othersDeterminant), othersTrace)),
        ),
        floor,
      )
      const gain = f32x4.div(voicePower, determinant)

      // The matrix between the gain and the spectrum.
      const upperLeftRe = f32x4.add(f32x4.add(f32x4.mul(others, nullLeftRe), own), guardLeft)
      const upperLeftIm = f32x4.mul(others, nullLeftIm)
      const upperRightRe = f32x4.add(f32x4.mul(others, nullUpperRe), guardRe)
      const upperRightIm = f32x4.add(f32x4.mul(others, nullUpperIm), guardIm)
      const lowerLeftRe = f32x4.add(f32x4.mul(others, nullLowerRe), guardRe)
      const lowerLeftIm = f32x4.sub(f32x4.mul(others, nullLowerIm), guardIm)
      const lowerRightRe = f32x4.add(f32x4.add(f32x4.mul(others, nullRightRe), own), guardRight)
      const lowerRightIm = f32x4.mul(others, nullRightIm)

      const leftRe = v128.load(mixtureAt)
      const leftIm = v128.load(mixtureAt + planeBytes)
      const rightRe = v128.load(mixtureAt + 2 * planeBytes)
      const rightIm = v128.load(mixtureAt + 3 * planeBytes)
      const newLeftRe = sumRe(upperLeftRe, upperLeftIm, upperRightRe, upperRightIm, leftRe, leftIm, rightRe, rightIm)
      const newLeftIm = sumIm(upperLeftRe, upperLeftIm, upperRightRe, upperRightIm, leftRe, leftIm, rightRe, rightIm)
      const newRightRe = sumRe(lowerLeftRe, lowerLeftIm, lowerRightRe, lowerRightIm, leftRe, leftIm, rightRe, rightIm)
      const newRightIm = sumIm(lowerLeftRe, lowerLeftIm, lowerRightRe, lowerRightIm, leftRe, leftIm, rightRe, rightIm)
      v128.store(mixtureAt, f32x4.mul(gain, newLeftRe))
      v128.store(mixtureAt + planeBytes, f32x4.mul(gain, newLeftIm))
      v128.store(mixtureAt + 2 * planeBytes, f32x4.mul(gain, newRightRe))
      v128.store(mixtureAt + 3 * planeBytes, f32x4.mul(gain, newRightIm))
      mixtureAt += rowBytes
      voiceAt += rowBytes
    }
    tile += vector
    voice += vector
    filters += vector
  }
}

/** Real part of `a * left + b * right`. */
function sumRe(
  aRe: v128,
  aIm: v128,
  bRe: v128,
  bIm: v128,
  leftRe: v128,
  leftIm: v128,
  rightRe: v128,
  rightIm: v128,
): v128 {
  const added = f32x4.add(f32x4.mul(aRe, leftRe), f32x4.mul(bRe, rightRe))
  return f32x4.sub(added, f32x4.add(f32x4.mul(aIm, leftIm), f32x4.mul(bIm, rightIm)))
}

/** Imaginary part of `a * left + b * right`. */
function sumIm(
  aRe: v128,
  aIm: v128,
  bRe: v128,
  bIm: v128,
  leftRe: v128,
  leftIm: v128,
  rightRe: v128,
  rightIm: v128,
): v128 {
  const crossed = f32x4.add(f32x4.mul(aRe, leftIm), f32x4.mul(bRe, rightIm))
  return f32x4.add(f32x4.add(crossed, f32x4.mul(aIm, leftRe)), f32x4.mul(bIm, rightRe))
}

function meanSquare(a: v128, b: v128): v128 {
  return f64x2.mul(f64x2.splat(0.5), f64x2.add(f64x2.mul(a, a), f64x2.mul(b, b)))
}

/** Two floats as doubles. */
function loadDoubles(address: usize): v128 {
  return f64x2.promote_low_f32x4(v128.load64_zero(address))
}

/** Two doubles as floats. */
function storeDoubles(address: usize, values: v128): void {
  v128.store64_lane(address, f32x4.demote_f64x2_zero(values), 0)
}
