import { at, float, vector } from './parts/memory'

/** See `StereoPacking` in `../pack-stereo.ts`, and `plainStereoPacking` in the tests for the same in TypeScript. */
export function pack(left: usize, right: usize, packed: usize, count: i32): i32 {
  left = at(left)
  right = at(right)
  packed = at(packed)
  let clipped = i32x4.splat(0)
  for (; count >= 4; count -= 4) {
    const leftValues = rounded(v128.load(left))
    const rightValues = rounded(v128.load(right))
    v128.store(packed, interleaved(leftValues, rightValues))
    clipped = i32x4.add(clipped, i32x4.add(isClipped(leftValues), isClipped(rightValues)))
    left += vector
    right += vector
    packed += vector
  }
  // The remaining samples, one by one; the other lanes are zeros, which are not clipped.
  for (; count > 0; count--) {
    const leftValues = rounded(v128.load32_zero(left))
    const rightValues = rounded(v128.load32_zero(right))
    v128.store32_lane(packed, interleaved(leftValues, rightValues), 0)
    clipped = i32x4.add(clipped, i32x4.add(isClipped(leftValues), isClipped(rightValues)))
    left += float
    right += float
    packed += float
  }
  // A lane of a comparison is -1 where it holds.
  return -(
    i32x4.extract_lane(clipped, 0) +
    i32x4.extract_lane(clipped, 1) +
    i32x4.extract_lane(clipped, 2) +
    i32x4.extract_lane(clipped, 3)
  )
}

/** Samples at the scale of 16 bits, halves upwards, not yet clipped. */
function rounded(samples: v128): v128 {
  const scaled = f32x4.mul(samples, f32x4.splat(32768))
  const whole = f32x4.floor(scaled)
  // Not floor(x + 0.5): in single precision that sum may round up by itself.
  const roundsUp = f32x4.ge(f32x4.sub(scaled, whole), f32x4.splat(0.5))
  return f32x4.add(whole, v128.and(roundsUp, f32x4.splat(1)))
}

/** False for NaN, which becomes 0. */
function isClipped(values: v128): v128 {
  return v128.or(f32x4.ge(values, f32x4.splat(32768)), f32x4.lt(values, f32x4.splat(-32768)))
}

/** Four samples of each channel, as 16 bits side by side. Both conversions saturate. */
function interleaved(left: v128, right: v128): v128 {
  const both = i16x8.narrow_i32x4_s(i32x4.trunc_sat_f32x4_s(left), i32x4.trunc_sat_f32x4_s(right))
  return v128.shuffle<i16>(both, both, 0, 4, 1, 5, 2, 6, 3, 7)
}
