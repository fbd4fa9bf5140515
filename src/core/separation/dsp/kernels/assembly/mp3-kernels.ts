import { at, double, float, vector } from './memory'

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

// Places in the tables of codes, in bytes: see `codeTables`.
const fourLengths: usize = 17 * 256 * 8
const candidates: usize = fourLengths + 16 * 8
const escapeBits: usize = candidates + 30 * 4 * 4
const pairCodes: usize = escapeBits + 32 * 4
const fourCodes: usize = pairCodes + 18 * 256 * 4

export function chooseCodes(values: usize, count: i32, regions: usize, tables: usize, coding: usize): i32 {
  values = at(values)
  tables = at(tables)
  coding = at(coding)
  let foursEnd = <usize>count
  while (foursEnd > 0 && load<u64>(values + foursEnd * float - 2 * float) == 0) foursEnd -= 2
  let pairsEnd = foursEnd
  let lengths: u64 = 0
  for (; pairsEnd > 3; pairsEnd -= 4) {
    const four = values + (pairsEnd - 4) * float
    const a = load<u32>(four)
    const b = load<u32>(four, float)
    const c = load<u32>(four, 2 * float)
    const d = load<u32>(four, 3 * float)
    if ((a | b | c | d) > 1) break
    lengths += load<u64>(tables + fourLengths + <usize>((a << 3) | (b << 2) | (c << 1) | d) * double)
  }
  const first = (<u32>lengths) & 0xffff
  const second = (<u32>(lengths >> 16)) & 0xffff
  regions = at(regions) + pairsEnd * float
  const firstEnd = values + <usize>load<i32>(regions) * float
  const secondEnd = values + <usize>load<i32>(regions, float) * float
  let bits = min(first, second)
  bits += chooseTable(values, firstEnd, tables, coding)
  bits += chooseTable(firstEnd, secondEnd, tables, coding + float)
  bits += chooseTable(secondEnd, values + pairsEnd * float, tables, coding + 2 * float)
  store<u32>(coding, second < first ? 1 : 0, 3 * float)
  store<u32>(coding, <u32>pairsEnd, 4 * float)
  store<u32>(coding, <u32>foursEnd, 5 * float)
  return bits
}

function chooseTable(start: usize, end: usize, tables: usize, to: usize): u32 {
  store<u32>(to, 0)
  let fours = i32x4.splat(0)
  let address = start
  for (; address + vector <= end; address += vector) fours = i32x4.max_s(fours, v128.load(address))
  if (address < end) fours = i32x4.max_s(fours, v128.load64_zero(address))
  const largest = max(
    max(i32x4.extract_lane(fours, 0), i32x4.extract_lane(fours, 1)),
    max(i32x4.extract_lane(fours, 2), i32x4.extract_lane(fours, 3)),
  )
  if (largest <= 0) return 0
  const lengths = tables + <usize>min(largest, 16) * 256 * double
  let sums: u64 = 0
  let escapes: u32 = 0
  if (largest <= 15) {
    for (address = start; address < end; address += double)
      sums += load<u64>(lengths + <usize>((load<u32>(address) << 4) | load<u32>(address, float)) * double)
  } else {
    for (address = start; address < end; address += double) {
      const x = load<u32>(address)
      const y = load<u32>(address, float)
      escapes += <u32>(x > 14) + <u32>(y > 14)
      sums += load<u64>(lengths + <usize>((min<u32>(x, 15) << 4) | min<u32>(y, 15)) * double)
    }
  }
  const set = largest <= 15 ? largest : 48 - clz(largest - 15)
  let candidate = tables + candidates + <usize>set * vector
  let least = u32.MAX_VALUE
  for (let table = load<u32>(candidate); table != 0; table = load<u32>(candidate)) {
    const bits = ((<u32>sums) & 0xffff) + escapes * load<u32>(tables + escapeBits + <usize>table * float)
    if (bits < least) {
      least = bits
      store<u32>(to, table)
    }
    sums >>= 16
    candidate += float
  }
  return least
}

export function writeValues(
  values: usize,
  signs: usize,
  regions: usize,
  tables: usize,
  coding: usize,
  to: usize,
  bit: u32,
): u32 {
  signs = at(signs)
  coding = at(coding)
  tables = at(tables)
  const start = at(to)
  const first = at(values)
  const pairsEnd = load<u32>(coding, 4 * float)
  regions = at(regions) + <usize>pairsEnd * float
  /** What is not a whole byte yet. */
  let address = start + (bit >> 3)
  let used = bit & 7
  let pending: u64 = (<u64>load<u8>(address)) >> (8 - used)
  let i: usize = 0
  for (let region: usize = 0; region < 3; region++) {
    const table = load<u32>(coding + region * float)
    const end = <usize>(region < 2 ? load<u32>(regions + region * float) : pairsEnd) * float
    if (table == 0) {
      i = end
      continue
    }
    const escape = load<u32>(tables + escapeBits + <usize>table * float)
    const codes = tables + pairCodes + <usize>(table < 16 ? table : <u32>(table < 24 ? 16 : 17)) * 256 * float
    for (; i < end; i += 2 * float) {
      const x = load<u32>(first + i)
      const y = load<u32>(first + i, float)
      const code = load<u32>(codes + <usize>((min<u32>(x, 15) << 4) | min<u32>(y, 15)) * float)
      let bits = <u64>(code >> 5)
      let length = code & 31
      if (escape != 0 && x > 14) {
        bits = (bits << escape) | (x - 15)
        length += escape
      }
      const hasX = <u32>(x != 0)
      bits = (bits << hasX) | ((load<u32>(signs + i) >> 31) & hasX)
      if (escape != 0 && y > 14) {
        bits = (bits << escape) | (y - 15)
        length += escape
      }
      const hasY = <u32>(y != 0)
      bits = (bits << hasY) | ((load<u32>(signs + i, float) >> 31) & hasY)
      length += hasX + hasY
      pending = (pending << length) | bits
      used += length
      store<u64>(address, bswap<u64>(pending << (64 - used)))
      address += used >> 3
      used &= 7
    }
  }
  const fours = tables + fourCodes + <usize>load<u32>(coding, 3 * float) * 16 * float
  const end = <usize>load<u32>(coding, 5 * float) * float
  for (; i < end; i += vector) {
    let four: u32 = 0
    let bits: u64 = 0
    let width: u32 = 0
    for (let j: usize = i; j < i + vector; j += float) {
      const value = load<u32>(first + j)
      four = (four << 1) | value
      bits = (bits << value) | ((load<u32>(signs + j) >> 31) & value)
      width += value
    }
    const code = load<u32>(fours + <usize>four * float)
    const length = (code & 31) + width
    pending = (pending << length) | ((<u64>(code >> 5)) << width) | bits
    used += length
    store<u64>(address, bswap<u64>(pending << (64 - used)))
    address += used >> 3
    used &= 7
  }
  const written = <u32>((address - start) << 3) + used
  store<u64>(start + ((written + 7) >> 3), 0)
  return written
}
