import { at, double, float, vector } from './memory'

// The part of `mp3-kernels.ts` that chooses Huffman codes and writes them.

// Offsets in the tables of codes, in bytes: see `codeTables`.
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
  const first = <u32>lengths & 0xffff
  const second = <u32>(lengths >> 16) & 0xffff
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
    const bits = (<u32>sums & 0xffff) + escapes * load<u32>(tables + escapeBits + <usize>table * float)
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
  /** The position, and the bits that do not fill a byte yet. */
  let address = start + (bit >> 3)
  let used = bit & 7
  let pending: u64 = <u64>load<u8>(address) >> (8 - used)
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
