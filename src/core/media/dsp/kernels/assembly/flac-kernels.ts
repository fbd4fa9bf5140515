import { at, double, float, vector } from './parts/memory'

// See `FlacKernels` in `../flac-kernels.ts`, and `plainFlacKernels` in the tests for the same in plain TypeScript.

export function separatePairs(pairs: usize, left: usize, right: usize, count: i32): void {
  pairs = at(pairs)
  left = at(left)
  right = at(right)
  for (; count > 0; count -= 2) {
    const both = v128.load64_zero(pairs)
    v128.store(left, f64x2.convert_low_i32x4_s(i32x4.shr_s(i32x4.shl(both, 16), 16)))
    v128.store(right, f64x2.convert_low_i32x4_s(i32x4.shr_s(both, 16)))
    pairs += double
    left += vector
    right += vector
  }
}

export function middleAndSide(left: usize, right: usize, middle: usize, side: usize, count: i32): void {
  left = at(left)
  right = at(right)
  middle = at(middle)
  side = at(side)
  for (; count > 0; count -= 2) {
    const a = v128.load(left)
    const b = v128.load(right)
    v128.store(middle, f64x2.floor(f64x2.mul(f64x2.add(a, b), f64x2.splat(0.5))))
    v128.store(side, f64x2.sub(a, b))
    left += vector
    right += vector
    middle += vector
    side += vector
  }
}

export function differenceSums(signal: usize, to: usize, count: i32): void {
  let address = at(signal) + 4 * double
  let sum0 = f64x2.splat(0)
  let sum1 = f64x2.splat(0)
  let sum2 = f64x2.splat(0)
  let sum3 = f64x2.splat(0)
  let sum4 = f64x2.splat(0)
  for (count -= 4; count >= 2; count -= 2) {
    const now = v128.load(address)
    const one = v128.load(address - double)
    const two = v128.load(address - 2 * double)
    const three = v128.load(address - 3 * double)
    const four = v128.load(address - 4 * double)
    const first = f64x2.sub(now, one)
    const firstBefore = f64x2.sub(one, two)
    const firstTwoBefore = f64x2.sub(two, three)
    const second = f64x2.sub(first, firstBefore)
    const secondBefore = f64x2.sub(firstBefore, firstTwoBefore)
    const third = f64x2.sub(second, secondBefore)
    const thirdBefore = f64x2.sub(secondBefore, f64x2.sub(firstTwoBefore, f64x2.sub(three, four)))
    sum0 = f64x2.add(sum0, f64x2.abs(now))
    sum1 = f64x2.add(sum1, f64x2.abs(first))
    sum2 = f64x2.add(sum2, f64x2.abs(second))
    sum3 = f64x2.add(sum3, f64x2.abs(third))
    sum4 = f64x2.add(sum4, f64x2.abs(f64x2.sub(third, thirdBefore)))
    address += vector
  }
  to = at(to)
  store<f64>(to, lanes(sum0))
  store<f64>(to, lanes(sum1), double)
  store<f64>(to, lanes(sum2), 2 * double)
  store<f64>(to, lanes(sum3), 3 * double)
  store<f64>(to, lanes(sum4), 4 * double)
}

export function autocorrelate(signal: usize, window: usize, windowed: usize, to: usize, count: i32): void {
  signal = at(signal)
  window = at(window)
  windowed = at(windowed)
  const end = windowed + <usize>(count >> 1) * vector
  // All products first: a load that overlaps two stores just before it takes many times as long.
  for (let address = windowed; address < end; address += vector) {
    v128.store(address, f64x2.mul(v128.load(signal), v128.load(window)))
    signal += vector
    window += vector
  }
  let lag0 = f64x2.splat(0)
  let lag1 = f64x2.splat(0)
  let lag2 = f64x2.splat(0)
  let lag3 = f64x2.splat(0)
  let lag4 = f64x2.splat(0)
  let lag5 = f64x2.splat(0)
  let lag6 = f64x2.splat(0)
  let lag7 = f64x2.splat(0)
  let lag8 = f64x2.splat(0)
  for (let address = windowed; address < end; address += vector) {
    const now = v128.load(address)
    lag0 = f64x2.add(lag0, f64x2.mul(now, now))
    lag1 = f64x2.add(lag1, f64x2.mul(now, v128.load(address - double)))
    lag2 = f64x2.add(lag2, f64x2.mul(now, v128.load(address - 2 * double)))
    lag3 = f64x2.add(lag3, f64x2.mul(now, v128.load(address - 3 * double)))
    lag4 = f64x2.add(lag4, f64x2.mul(now, v128.load(address - 4 * double)))
    lag5 = f64x2.add(lag5, f64x2.mul(now, v128.load(address - 5 * double)))
    lag6 = f64x2.add(lag6, f64x2.mul(now, v128.load(address - 6 * double)))
    lag7 = f64x2.add(lag7, f64x2.mul(now, v128.load(address - 7 * double)))
    lag8 = f64x2.add(lag8, f64x2.mul(now, v128.load(address - 8 * double)))
  }
  to = at(to)
  store<f64>(to, lanes(lag0))
  store<f64>(to, lanes(lag1), double)
  store<f64>(to, lanes(lag2), 2 * double)
  store<f64>(to, lanes(lag3), 3 * double)
  store<f64>(to, lanes(lag4), 4 * double)
  store<f64>(to, lanes(lag5), 5 * double)
  store<f64>(to, lanes(lag6), 6 * double)
  store<f64>(to, lanes(lag7), 7 * double)
  store<f64>(to, lanes(lag8), 8 * double)
}

export function residual(signal: usize, coefficients: usize, order: i32, scale: f64, to: usize, count: i32): f64 {
  const first = at(coefficients)
  const end = first + <usize>order * double
  const scales = f64x2.splat(scale)
  let address = at(signal) + <usize>order * double
  to = at(to) + <usize>order * float
  let largest = f64x2.splat(0)
  for (count -= order; count > 0; count -= 4) {
    let low = f64x2.splat(0)
    let high = f64x2.splat(0)
    let before = address - double
    for (let coefficient = first; coefficient < end; coefficient += double) {
      const factor = v128.load64_splat(coefficient)
      low = f64x2.add(low, f64x2.mul(factor, v128.load(before)))
      high = f64x2.add(high, f64x2.mul(factor, v128.load(before, vector)))
      before -= double
    }
    low = f64x2.sub(v128.load(address), f64x2.floor(f64x2.mul(low, scales)))
    high = f64x2.sub(v128.load(address, vector), f64x2.floor(f64x2.mul(high, scales)))
    largest = f64x2.max(largest, f64x2.max(f64x2.abs(low), f64x2.abs(high)))
    v128.store(to, v128.shuffle<i32>(i32x4.trunc_sat_f64x2_s_zero(low), i32x4.trunc_sat_f64x2_s_zero(high), 0, 1, 4, 5))
    address += 2 * vector
    to += vector
  }
  return max(f64x2.extract_lane(largest, 0), f64x2.extract_lane(largest, 1))
}

export function foldedSums(residual: usize, order: i32, length: i32, parts: i32, to: usize): void {
  to = at(to)
  const first = at(residual)
  store<f64>(to, foldedSum(first + <usize>order * float, length - order))
  for (let part = 1; part < parts; part++) {
    to += double
    store<f64>(to, foldedSum(first + <usize>(part * length) * float, length))
  }
}

function foldedSum(residual: usize, count: i32): f64 {
  let low = i64x2.splat(0)
  let high = i64x2.splat(0)
  for (; count >= 4; count -= 4) {
    const values = v128.load(residual)
    const folded = v128.xor(i32x4.shl(values, 1), i32x4.shr_s(values, 31))
    low = i64x2.add(low, i64x2.extend_low_i32x4_u(folded))
    high = i64x2.add(high, i64x2.extend_high_i32x4_u(folded))
    residual += vector
  }
  const sums = i64x2.add(low, high)
  let sum = i64x2.extract_lane(sums, 0) + i64x2.extract_lane(sums, 1)
  for (; count > 0; count--) {
    sum += fold(load<i32>(residual))
    residual += float
  }
  return <f64>sum
}

export function choosePartitions(
  sums: usize,
  parts: i32,
  sampleCount: i32,
  order: i32,
  parameterBits: i32,
  to: usize,
): f64 {
  sums = at(sums)
  to = at(to)
  const parameters = to + (1 + mostParts) * float
  const maxParameter = (1 << parameterBits) - 2
  let least = f64.MAX_VALUE
  while (true) {
    const length = sampleCount / parts
    let bits = <f64>(parts * parameterBits)
    for (let part = 0; part < parts; part++) {
      const count = <f64>(part == 0 ? length - order : length)
      const sum = load<f64>(sums + <usize>part * double)
      let parameter = 0
      let fewest: f64 = 0
      if (count > 0) {
        const mean = max<f64>(1, (sum / count) * Math.LN2)
        parameter = min(31 - <i32>clz(<u32>mean), maxParameter)
        fewest = codeBits(sum, count, parameter)
        const next = min(parameter + 1, maxParameter)
        const nextBits = codeBits(sum, count, next)
        if (nextBits < fewest) {
          fewest = nextBits
          parameter = next
        }
      }
      store<i32>(parameters + <usize>part * float, parameter)
      bits += fewest
    }
    if (bits < least) {
      least = bits
      store<i32>(to, 31 - <i32>clz(parts))
      for (let part: usize = 0; part < <usize>parts; part++)
        store<i32>(to + (1 + part) * float, load<i32>(parameters + part * float))
    }
    if (parts == 1) return least
    parts >>= 1
    for (let part: usize = 0; part < <usize>parts; part++)
      store<f64>(sums + part * double, load<f64>(sums + part * vector) + load<f64>(sums + part * vector, double))
  }
}

const mostParts: usize = 32

function codeBits(sum: f64, count: f64, parameter: i32): f64 {
  const step = <f64>(1 << parameter)
  return count * <f64>(1 + parameter) + max<f64>(0, (sum - (count * (step - 1)) / 2) / step)
}

export function writePartitions(
  residual: usize,
  sampleCount: i32,
  order: i32,
  partitions: usize,
  parameterBits: u32,
  to: usize,
  bit: u32,
): u32 {
  residual = at(residual) + <usize>order * float
  partitions = at(partitions)
  const parts = 1 << load<i32>(partitions)
  const length = sampleCount / parts
  const start = at(to)
  let address = start + (bit >> 3)
  /** The bits that do not fill a word yet, and their number: fewer than 32. */
  let used = bit & 7
  let pending: u64 = <u64>load<u8>(address) >> (8 - used)
  for (let part = 0; part < parts; part++) {
    partitions += float
    const parameter = load<u32>(partitions)
    pending = (pending << parameterBits) | parameter
    used += parameterBits
    store<u32>(address, bswap<u32>(<u32>(pending >> (used & 31))))
    address += (used >> 5) << 2
    used &= 31
    for (let count = part == 0 ? length - order : length; count > 0; count--) {
      const folded = fold(load<i32>(residual))
      let zeros = folded >> parameter
      for (; zeros + parameter >= 32; zeros -= min<u32>(zeros, 32)) {
        const skipped = min<u32>(zeros, 32)
        pending <<= skipped
        used += skipped
        if (used >= 32) {
          used -= 32
          store<u32>(address, bswap<u32>(<u32>(pending >> used)))
          address += 4
        }
      }
      const width = zeros + 1 + parameter
      pending = (pending << width) | ((<u64>1) << parameter) | (folded & ((1 << parameter) - 1))
      used += width
      // Written each time, even if the word is not full and is written again: a branch here could not be predicted.
      store<u32>(address, bswap<u32>(<u32>(pending >> (used & 31))))
      address += (used >> 5) << 2
      used &= 31
      residual += float
    }
  }
  store<u32>(address, bswap<u32>(<u32>(pending << (32 - used))))
  return <u32>((address - start) << 3) + used
}

/** 0, -1, 1, -2, 2 ... as 0, 1, 2, 3, 4 ... */
function fold(value: i32): u32 {
  return (value << 1) ^ (value >> 31)
}

function lanes(sums: v128): f64 {
  return f64x2.extract_lane(sums, 0) + f64x2.extract_lane(sums, 1)
}
