import { codeTables } from '../../dsp/kernels/mp3-codes.js'
import { type Code, pairCodes, quadCodes } from './huffman-codes.js'

/** The largest value that has a code. */
export const largestValue = 15 + 2 ** 13 - 1

/** Bits after a pair's code for each of its values from 15 on, by table, of which 16 is the first with escapes. */
const escapeBits = [1, 2, 3, 4, 6, 8, 10, 13, 4, 5, 6, 7, 8, 9, 11, 13]

const withEscapes = [16, 24]

/** Tables to choose from, by the largest value up to 15, then by its number of bits beyond 15. */
const candidates = [
  [],
  [1],
  [2, 3],
  [5, 6],
  [7, 8, 9],
  [7, 8, 9],
  [10, 11, 12],
  [10, 11, 12],
  ...Array.from({ length: 8 }, () => [13, 15]),
  ...Array.from({ length: 14 }, (_, width) =>
    withEscapes.map((first) => {
      let table = first
      while (escapeBits[table - 16]! < width) table++
      return table
    }),
  ),
]

/** Fills in the tables of codes at their offset in the kernel's memory. */
export function writeCodeTables(memory: Float32Array<ArrayBuffer>, offset: number): void {
  const integers = new Int32Array(memory.buffer, 4 * offset, codeTables.end)
  const lanes = new Uint16Array(memory.buffer, 4 * offset, 2 * codeTables.end)
  for (let set = 0; set < 17; set++) {
    const tables = set < 16 ? candidates[set] : withEscapes
    for (const [lane, table] of tables!.entries())
      for (let pair = 0; pair < 256; pair++)
        lanes[2 * codeTables.pairLengths + 4 * (256 * set + pair) + lane] = pairLength(pairCodes[table]!, pair)
  }
  for (const [lane, code] of quadCodes.entries())
    for (let four = 0; four < 16; four++) {
      lanes[2 * codeTables.fourLengths + 4 * four + lane] = fourLength(code, four)
      integers[codeTables.fourCodes + 16 * lane + four] = codeAndLength(code, four)
    }
  for (const [index, tables] of candidates.entries()) integers.set(tables, codeTables.candidates + 4 * index)
  integers.set(escapeBits, codeTables.escapeBits + 16)
  for (const [table, code] of Object.entries(pairCodes)) {
    const set = Number(table) === 24 ? 17 : Number(table)
    for (let pair = 0; pair < 256; pair++) integers[codeTables.pairCodes + 256 * set + pair] = codeAndLength(code, pair)
  }
}

function codeAndLength({ bits, lengths }: Code, index: number): number {
  return bits[index]! * 32 + lengths[index]!
}

function pairLength(code: Code, pair: number): number {
  return code.lengths[pair]! + (pair >> 4 ? 1 : 0) + (pair & 15 ? 1 : 0)
}

function fourLength(code: Code, four: number): number {
  return code.lengths[four]! + [1, 2, 4, 8].filter((bit) => four & bit).length
}
