import { at, float, vector } from './memory'

// See `Mp3Kernels` in `../mp3-kernels.ts`, and `plainMp3Kernels` there for the same in plain TypeScript.

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

export function quantise(values: usize, scale: f32, to: usize, count: i32): void {
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
