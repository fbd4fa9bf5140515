import type { BitWriter } from '../bit-writer.js'
import { type Code, pairCodes, quadCodes } from './huffman-codes.js'

/** How the values of a granule are coded: pairs in up to three regions with a table each, then fours of 0 and 1, then zeros. */
export interface Coding {
  /** Where the pairs end, and where the fours of 0 and 1 end. */
  pairsEnd: number
  foursEnd: number
  /** Where the first and the second region end. */
  regionEnds: readonly [number, number]
  tables: [number, number, number]
  fourTable: number
  bits: number
}

/** The largest value that has a code. */
export const largestValue = 15 + 2 ** 13 - 1

/** Bits after a pair's code for each of its values from 15 on, by table. */
const escapeBits: Record<number, number> = {
  16: 1,
  17: 2,
  18: 3,
  19: 4,
  20: 6,
  21: 8,
  22: 10,
  23: 13,
  24: 4,
  25: 5,
  26: 6,
  27: 7,
  28: 8,
  29: 9,
  30: 11,
  31: 13,
}

/** Tables to choose from, by the largest value. */
const candidates = [[], [1], [2, 3], [5, 6], [7, 8, 9], [7, 8, 9], [10, 11, 12], [10, 11, 12]]
const withoutEscapes = [13, 15]
const withEscapes = [16, 24]

/** Those of `withEscapes` for values that need so many bits after the code. */
const escapeTables = Array.from({ length: 14 }, (_, width) =>
  withEscapes.map((first) => {
    let table = first
    while (escapeBits[table] < width) table++
    return table
  }),
)

/** So many bits each for the sums of two or three tables, in one number that holds them exactly. */
const sumBits = 17

/** By the largest value up to 15, then for more: the bits of each pair with its signs in all tables to choose from. */
const pairSums = [...candidates, ...Array.from({ length: 8 }, () => withoutEscapes), withEscapes].map((tables) =>
  Float64Array.from({ length: 256 }, (_, pair) =>
    tables.reduce((sum, table, index) => sum + pairLength(pairCodes[table], pair) * 2 ** (sumBits * index), 0),
  ),
)
const fourLengths = quadCodes.map((code) => Uint8Array.from({ length: 16 }, (_, four) => fourLength(code, four)))

function pairLength(code: Code, pair: number): number {
  return code.lengths[pair] + (pair >> 4 ? 1 : 0) + (pair & 15 ? 1 : 0)
}

function fourLength(code: Code, four: number): number {
  return code.lengths[four] + [1, 2, 4, 8].filter((bit) => four & bit).length
}

/**
 * The shortest coding of the values' magnitudes.
 *
 * @param regionEnds by where the pairs end
 */
export function codingOf(values: Int32Array, regionEnds: (pairsEnd: number) => readonly [number, number]): Coding {
  let foursEnd = values.length
  while (foursEnd > 0 && (values[foursEnd - 1] | values[foursEnd - 2]) === 0) foursEnd -= 2
  let pairsEnd = foursEnd
  let first = 0
  let second = 0
  for (; pairsEnd > 3; pairsEnd -= 4) {
    const a = values[pairsEnd - 4]
    const b = values[pairsEnd - 3]
    const c = values[pairsEnd - 2]
    const d = values[pairsEnd - 1]
    if ((a | b | c | d) > 1) break
    const four = (a << 3) | (b << 2) | (c << 1) | d
    first += fourLengths[0][four]
    second += fourLengths[1][four]
  }
  const fourTable = second < first ? 1 : 0
  const ends = regionEnds(pairsEnd)
  const firstEnd = Math.min(ends[0], pairsEnd)
  const secondEnd = Math.min(ends[1], pairsEnd)
  const coding: Coding = {
    pairsEnd,
    foursEnd,
    regionEnds: [firstEnd, secondEnd],
    tables: [0, 0, 0],
    fourTable,
    bits: Math.min(first, second),
  }
  chooseTable(values, 0, firstEnd, coding, 0)
  chooseTable(values, firstEnd, secondEnd, coding, 1)
  chooseTable(values, secondEnd, pairsEnd, coding, 2)
  return coding
}

function chooseTable(values: Int32Array, start: number, end: number, coding: Coding, region: number): void {
  let largest = 0
  for (let i = start; i < end; i++) if (values[i] > largest) largest = values[i]
  if (largest === 0) return
  if (largest > 15) return chooseEscapes(values, start, end, largest, coding, region)
  const tables = largest < 8 ? candidates[largest] : withoutEscapes
  const lengths = pairSums[largest]
  let sum = 0
  for (let i = start; i < end; i += 2) sum += lengths[(values[i] << 4) | values[i + 1]]
  take(coding, region, sum, tables, 0)
}

function chooseEscapes(
  values: Int32Array,
  start: number,
  end: number,
  largest: number,
  coding: Coding,
  region: number,
): void {
  const lengths = pairSums[16]
  let sum = 0
  let escapes = 0
  for (let i = start; i < end; i += 2) {
    let x = values[i]
    let y = values[i + 1]
    if (x > 14) {
      escapes++
      x = 15
    }
    if (y > 14) {
      escapes++
      y = 15
    }
    sum += lengths[(x << 4) | y]
  }
  const width = 32 - Math.clz32(largest - 15)
  take(coding, region, sum, escapeTables[width], escapes)
}

/** Takes the table with the fewest bits. */
function take(coding: Coding, region: number, sums: number, tables: readonly number[], escapes: number): void {
  let least = Infinity
  let rest = sums
  for (let index = 0; index < tables.length; index++) {
    const others = Math.floor(rest / 2 ** sumBits)
    const bits = rest - others * 2 ** sumBits + (escapes === 0 ? 0 : escapes * escapeBits[tables[index]])
    rest = others
    if (bits >= least) continue
    least = bits
    coding.tables[region] = tables[index]
  }
  coding.bits += least
}

/** @param signs of which the signs count */
export function writeValues(values: Int32Array, signs: Float32Array, coding: Coding, writer: BitWriter): void {
  const { pairsEnd, foursEnd, regionEnds, tables, fourTable } = coding
  writePairs(values, signs, 0, regionEnds[0], tables[0], writer)
  writePairs(values, signs, regionEnds[0], regionEnds[1], tables[1], writer)
  writePairs(values, signs, regionEnds[1], pairsEnd, tables[2], writer)
  const { bits, lengths } = quadCodes[fourTable]
  for (let i = pairsEnd; i < foursEnd; i += 4) {
    let code = 0
    let width = 0
    let four = 0
    for (let j = i; j < i + 4; j++) {
      const value = values[j]
      four = (four << 1) | value
      if (value === 0) continue
      code = (code << 1) | (signs[j] < 0 ? 1 : 0)
      width++
    }
    writer.put((bits[four] << width) | code, lengths[four] + width)
  }
}

function writePairs(
  values: Int32Array,
  signs: Float32Array,
  start: number,
  end: number,
  table: number,
  writer: BitWriter,
): void {
  if (table === 0) return
  const escape = escapeBits[table] ?? 0
  const { bits, lengths } = pairCodes[table < 16 ? table : table < 24 ? 16 : 24]
  for (let i = start; i < end; i += 2) {
    const x = values[i]
    const y = values[i + 1]
    const pair = (Math.min(x, 15) << 4) | Math.min(y, 15)
    if (escape === 0) {
      let code = bits[pair]
      let width = lengths[pair]
      if (x > 0) {
        code = (code << 1) | (signs[i] < 0 ? 1 : 0)
        width++
      }
      if (y > 0) {
        code = (code << 1) | (signs[i + 1] < 0 ? 1 : 0)
        width++
      }
      writer.put(code, width)
      continue
    }
    writer.put(bits[pair], lengths[pair])
    if (x > 14) writer.put(x - 15, escape)
    if (x > 0) writer.put(signs[i] < 0 ? 1 : 0, 1)
    if (y > 14) writer.put(y - 15, escape)
    if (y > 0) writer.put(signs[i + 1] < 0 ? 1 : 0, 1)
  }
}
