import { at, double, float, vector } from './parts/memory'

// See `Mp3Kernels` in `../mp3-kernels.ts`, and `plainMp3Kernels` in the tests for the same in plain TypeScript.

export { chooseCodes, writeValues } from './parts/mp3-codes'

const subbands: usize = 32
const windowLanes: usize = 64

export function subbandRows(
  samples: usize,
  window: usize,
  cosines: usize,
  scratch: usize,
  to: usize,
  count: i32,
): void {
  samples = at(samples)
  window = at(window)
  cosines = at(cosines)
  const sums = at(scratch)
  const folded = sums + windowLanes * float
  to = at(to)
  const alternate = f32x4(1, -1, 1, -1)
  for (let row = 0; row < count; row++) {
    for (let lane: usize = 0; lane < windowLanes * float; lane += vector) {
      let sum = f32x4.splat(0)
      for (let part: usize = lane; part < 8 * windowLanes * float; part += windowLanes * float)
        sum = f32x4.add(sum, f32x4.mul(v128.load(samples + part), v128.load(window + part)))
      v128.store(sums + lane, sum)
    }
    store<f32>(folded, load<f32>(sums + 47 * float))
    for (let i: usize = 1; i < subbands; i++) {
      const one = load<f32>(sums + (47 - i) * float)
      const other = i <= 16 ? load<f32>(sums + (47 + i) * float) : -load<f32>(sums + (i - 17) * float)
      store<f32>(folded + i * float, one + other)
    }
    for (let subband: usize = 0; subband < 16; subband += 4) {
      let even = f32x4.splat(0)
      let odd = f32x4.splat(0)
      let factors = cosines + subband * float
      for (let i: usize = 0; i < subbands; i += 2) {
        even = f32x4.add(even, f32x4.mul(v128.load32_splat(folded + i * float), v128.load(factors)))
        odd = f32x4.add(odd, f32x4.mul(v128.load32_splat(folded + i * float, float), v128.load(factors, 16 * float)))
        factors += 32 * float
      }
      let low = f32x4.add(even, odd)
      let high = f32x4.sub(even, odd)
      high = v128.shuffle<f32>(high, high, 3, 2, 1, 0)
      if (row & 1) {
        low = f32x4.mul(low, alternate)
        high = f32x4.mul(high, alternate)
      }
      v128.store(to + subband * float, low)
      v128.store(to + (28 - subband) * float, high)
    }
    samples += subbands * float
    to += subbands * float
  }
}

export function transform(rows: usize, matrix: usize, to: usize): void {
  rows = at(rows)
  matrix = at(matrix)
  to = at(to)
  for (let subband: usize = 0; subband < subbands; subband++) {
    let sum0 = f32x4.splat(0)
    let sum1 = f32x4.splat(0)
    let sum2 = f32x4.splat(0)
    let sum3 = f32x4.splat(0)
    let sum4 = f32x4.splat(0)
    let value = rows + subband * float
    let factors = matrix
    for (let row = 0; row < 36; row++) {
      const all = v128.load32_splat(value)
      sum0 = f32x4.add(sum0, f32x4.mul(all, v128.load(factors)))
      sum1 = f32x4.add(sum1, f32x4.mul(all, v128.load(factors, vector)))
      sum2 = f32x4.add(sum2, f32x4.mul(all, v128.load(factors, 2 * vector)))
      sum3 = f32x4.add(sum3, f32x4.mul(all, v128.load(factors, 3 * vector)))
      sum4 = f32x4.add(sum4, f32x4.mul(all, v128.load(factors, 4 * vector)))
      value += subbands * float
      factors += 5 * vector
    }
    v128.store(to, sum0)
    v128.store(to, sum1, vector)
    v128.store(to, sum2, 2 * vector)
    v128.store(to, sum3, 3 * vector)
    v128.store(to, sum4, 4 * vector)
    to += 18 * float
  }
}

export function compressed(values: usize, to: usize, count: i32): void {
  values = at(values)
  to = at(to)
  for (; count > 0; count -= 4) {
    const magnitude = f32x4.abs(v128.load(values))
    v128.store(to, f32x4.sqrt(f32x4.mul(magnitude, f32x4.sqrt(magnitude))))
    values += vector
    to += vector
  }
}

export function quantize(values: usize, scale: f32, to: usize, count: i32): void {
  values = at(values)
  to = at(to)
  const scales = f32x4.splat(scale)
  const rounding = f32x4.splat(0.4054)
  for (; count > 0; count -= 4) {
    const scaled = f32x4.add(f32x4.mul(v128.load(values), scales), rounding)
    v128.store(to, i32x4.trunc_sat_f32x4_s(scaled))
    values += vector
    to += vector
  }
}

export function limited(samples: usize, most: f32, count: i32): void {
  samples = at(samples)
  for (; count > 0; count -= 4) {
    const values = v128.load(samples)
    const within = f32x4.min(f32x4.max(values, f32x4.splat(-most)), f32x4.splat(most))
    v128.store(samples, v128.and(within, f32x4.eq(values, values)))
    samples += vector
  }
}

export function energies(rows: usize, to: usize): void {
  rows = at(rows)
  to = at(to)
  for (let part = 0; part < 3; part++) {
    let sum: f64 = 0
    for (let row = 0; row < 6; row++) {
      for (let subband: usize = 3; subband < subbands; subband++) {
        const value = <f64>load<f32>(rows + subband * float)
        sum += value * value
      }
      rows += subbands * float
    }
    store<f64>(to, sum)
    to += double
  }
}

export function reduceAliases(values: usize, factors: usize): void {
  values = at(values)
  factors = at(factors)
  const end = values + 576 * float
  for (let edge = values + 18 * float; edge < end; edge += 18 * float) {
    for (let i: usize = 0; i < 8; i += 2) {
      const lower = edge - (i + 2) * float
      const upper = edge + i * float
      const nearest = v128.load64_zero(lower)
      const below = f64x2.promote_low_f32x4(v128.shuffle<f32>(nearest, nearest, 1, 0, 2, 3))
      const above = f64x2.promote_low_f32x4(v128.load64_zero(upper))
      const cosines = v128.load(factors + i * double)
      const sines = v128.load(factors + i * double, 8 * double)
      const down = f32x4.demote_f64x2_zero(f64x2.add(f64x2.mul(below, cosines), f64x2.mul(above, sines)))
      const up = f32x4.demote_f64x2_zero(f64x2.sub(f64x2.mul(above, cosines), f64x2.mul(below, sines)))
      v128.store64_lane(lower, v128.shuffle<f32>(down, down, 1, 0, 2, 3), 0)
      v128.store64_lane(upper, up, 0)
    }
  }
}

export function bandSquares(values: usize, ends: usize, bands: i32, to: usize): void {
  values = at(values)
  ends = at(ends)
  to = at(to)
  let address = values
  for (let band = 0; band < bands; band++) {
    const end = values + <usize>load<i32>(ends) * float
    let sum: f64 = 0
    for (; address < end; address += float) {
      const value = <f64>load<f32>(address)
      sum += value * value
    }
    store<f64>(to, sum)
    to += double
    ends += float
  }
}

export function stereoSums(left: usize, right: usize, ends: usize, bands: i32, to: usize): void {
  left = at(left)
  right = at(right)
  ends = at(ends)
  to = at(to)
  let i: usize = 0
  for (let band = 0; band < bands; band++) {
    const end = <usize>load<i32>(ends) * float
    let ll: f64 = 0
    let rr: f64 = 0
    let lr: f64 = 0
    for (; i < end; i += float) {
      const a = <f64>load<f32>(left + i)
      const b = <f64>load<f32>(right + i)
      ll += a * a
      rr += b * b
      lr += a * b
    }
    store<f64>(to, ll)
    store<f64>(to, rr, double)
    store<f64>(to, lr, 2 * double)
    to += 3 * double
    ends += float
  }
}

export function middleAndSide(left: usize, right: usize, count: i32): void {
  left = at(left)
  right = at(right)
  const half = f64x2.splat(Math.SQRT1_2)
  for (; count > 0; count -= 2) {
    const a = f64x2.promote_low_f32x4(v128.load64_zero(left))
    const b = f64x2.promote_low_f32x4(v128.load64_zero(right))
    v128.store64_lane(left, f32x4.demote_f64x2_zero(f64x2.mul(f64x2.add(a, b), half)), 0)
    v128.store64_lane(right, f32x4.demote_f64x2_zero(f64x2.mul(f64x2.sub(a, b), half)), 0)
    left += double
    right += double
  }
}

export function scaleBands(values: usize, ends: usize, scales: usize, bands: i32, count: i32): f32 {
  values = at(values)
  ends = at(ends)
  scales = at(scales)
  let address = values
  for (let band = 0; band < bands; band++) {
    const scale = v128.load64_splat(scales)
    const end = values + <usize>load<i32>(ends) * float
    for (; address < end; address += double) {
      const scaled = f64x2.mul(f64x2.promote_low_f32x4(v128.load64_zero(address)), scale)
      v128.store64_lane(address, f32x4.demote_f64x2_zero(scaled), 0)
    }
    scales += double
    ends += float
  }
  let largest = f32x4.splat(0)
  for (; count > 0; count -= 4) {
    largest = f32x4.max(largest, v128.load(values))
    values += vector
  }
  return max(
    max(f32x4.extract_lane(largest, 0), f32x4.extract_lane(largest, 1)),
    max(f32x4.extract_lane(largest, 2), f32x4.extract_lane(largest, 3)),
  )
}
