import { at, float, vector } from './parts/memory'

/** See `DotProduct` in `../dot-product.ts`, and `plainDotProduct` in the tests for the same in plain TypeScript. */
export function dotProduct(a: usize, b: usize, count: i32): f32 {
  a = at(a)
  b = at(b)
  let low = f32x4.splat(0)
  let high = f32x4.splat(0)
  for (; count >= 8; count -= 8) {
    low = f32x4.add(low, f32x4.mul(v128.load(a), v128.load(b)))
    high = f32x4.add(high, f32x4.mul(v128.load(a, vector), v128.load(b, vector)))
    a += 2 * vector
    b += 2 * vector
  }
  for (; count > 0; count--) {
    low = f32x4.add(low, f32x4.mul(v128.load32_zero(a), v128.load32_zero(b)))
    a += float
    b += float
  }
  const sums = f32x4.add(low, high)
  return (
    f32x4.extract_lane(sums, 0) +
    f32x4.extract_lane(sums, 1) +
    f32x4.extract_lane(sums, 2) +
    f32x4.extract_lane(sums, 3)
  )
}
