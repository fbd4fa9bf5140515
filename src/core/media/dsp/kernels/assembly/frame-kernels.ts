import { at, float, vector } from './parts/memory'

// See `FrameKernels` in `../frame-kernels.ts`, and `plainFrameKernels` in the tests for the same in plain TypeScript.

export function multiply(to: usize, a: usize, b: usize, count: i32): void {
  to = at(to)
  a = at(a)
  b = at(b)
  for (; count >= 8; count -= 8) {
    v128.store(to, f32x4.mul(v128.load(a), v128.load(b)))
    v128.store(to, f32x4.mul(v128.load(a, vector), v128.load(b, vector)), vector)
    to += 2 * vector
    a += 2 * vector
    b += 2 * vector
  }
  for (; count > 0; count--) {
    store<f32>(to, load<f32>(a) * load<f32>(b))
    to += float
    a += float
    b += float
  }
}

export function multiplyAdd(to: usize, a: usize, b: usize, count: i32): void {
  to = at(to)
  a = at(a)
  b = at(b)
  for (; count >= 8; count -= 8) {
    v128.store(to, f32x4.add(v128.load(to), f32x4.mul(v128.load(a), v128.load(b))))
    v128.store(to, f32x4.add(v128.load(to, vector), f32x4.mul(v128.load(a, vector), v128.load(b, vector))), vector)
    to += 2 * vector
    a += 2 * vector
    b += 2 * vector
  }
  for (; count > 0; count--) {
    store<f32>(to, load<f32>(to) + load<f32>(a) * load<f32>(b))
    to += float
    a += float
    b += float
  }
}

export function split(pairs: usize, even: usize, odd: usize, count: i32): void {
  pairs = at(pairs)
  even = at(even)
  odd = at(odd)
  for (; count >= 4; count -= 4) {
    const first = v128.load(pairs)
    const second = v128.load(pairs, vector)
    v128.store(even, v128.shuffle<f32>(first, second, 0, 2, 4, 6))
    v128.store(odd, v128.shuffle<f32>(first, second, 1, 3, 5, 7))
    pairs += 2 * vector
    even += vector
    odd += vector
  }
  for (; count > 0; count--) {
    store<f32>(even, load<f32>(pairs))
    store<f32>(odd, load<f32>(pairs, float))
    pairs += 2 * float
    even += float
    odd += float
  }
}

export function merge(pairs: usize, even: usize, odd: usize, count: i32): void {
  pairs = at(pairs)
  even = at(even)
  odd = at(odd)
  for (; count >= 4; count -= 4) {
    const evens = v128.load(even)
    const odds = v128.load(odd)
    v128.store(pairs, v128.shuffle<f32>(evens, odds, 0, 4, 1, 5))
    v128.store(pairs, v128.shuffle<f32>(evens, odds, 2, 6, 3, 7), vector)
    pairs += 2 * vector
    even += vector
    odd += vector
  }
  for (; count > 0; count--) {
    store<f32>(pairs, load<f32>(even))
    store<f32>(pairs, load<f32>(odd), float)
    pairs += 2 * float
    even += float
    odd += float
  }
}
