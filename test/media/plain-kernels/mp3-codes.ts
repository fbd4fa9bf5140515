import { codeTables, codingFields, type Mp3CodeKernels } from '../../../src/core/media/dsp/kernels/mp3-codes.js'

/** The kernels for MP3 codes in plain TypeScript. */
export function plainMp3Codes(memory: Float32Array<ArrayBuffer>): Mp3CodeKernels {
  const integers = new Int32Array(memory.buffer)
  const lanes = new Uint16Array(memory.buffer)
  const bytes = new Uint8Array(memory.buffer)
  const view = new DataView(memory.buffer)

  /** Writes the table that needs the fewest bits, and returns their number. */
  function chooseTable(start: number, end: number, tables: number, to: number): number {
    integers[to] = 0
    let largest = 0
    for (let i = start; i < end; i++) largest = Math.max(largest, integers[i]!)
    if (largest === 0) return 0
    const lengths = 2 * (tables + codeTables.pairLengths + 2 * 256 * Math.min(largest, 16))
    const sums = [0, 0, 0, 0]
    let escapes = 0
    for (let i = start; i < end; i += 2) {
      const [x, y] = [integers[i], integers[i + 1]]
      if (largest > 15) escapes += (x! > 14 ? 1 : 0) + (y! > 14 ? 1 : 0)
      const pair = (Math.min(x!, 15) << 4) | Math.min(y!, 15)
      for (let lane = 0; lane < 4; lane++) sums[lane]! += lanes[lengths + 4 * pair + lane]!
    }
    const set = largest > 15 ? 48 - Math.clz32(largest - 15) : largest
    const candidates = tables + codeTables.candidates + 4 * set
    let least = Infinity
    for (let lane = 0; integers[candidates + lane] !== 0; lane++) {
      const table = integers[candidates + lane]!
      const bits = sums[lane]! + escapes * integers[tables + codeTables.escapeBits + table]!
      if (bits >= least) continue
      least = bits
      integers[to] = table
    }
    return least
  }

  return {
    chooseCodes(values, count, regions, tables, coding) {
      let foursEnd = count
      while (foursEnd > 0 && (integers[values + foursEnd - 1]! | integers[values + foursEnd - 2]!) === 0) foursEnd -= 2
      let pairsEnd = foursEnd
      const sums = [0, 0]
      for (; pairsEnd > 3; pairsEnd -= 4) {
        const [a, b, c, d] = integers.subarray(values + pairsEnd - 4, values + pairsEnd)
        if ((a! | b! | c! | d!) > 1) break
        const lengths = 2 * (tables + codeTables.fourLengths + 2 * ((a! << 3) | (b! << 2) | (c! << 1) | d!))
        for (let lane = 0; lane < 2; lane++) sums[lane]! += lanes[lengths + lane]!
      }
      const firstEnd = values + integers[regions + pairsEnd]!
      const secondEnd = values + integers[regions + pairsEnd + 1]!
      let bits = Math.min(sums[0]!, sums[1]!)
      bits += chooseTable(values, firstEnd, tables, coding + codingFields.tables)
      bits += chooseTable(firstEnd, secondEnd, tables, coding + codingFields.tables + 1)
      bits += chooseTable(secondEnd, values + pairsEnd, tables, coding + codingFields.tables + 2)
      integers[coding + codingFields.fourTable] = sums[1]! < sums[0]! ? 1 : 0
      integers[coding + codingFields.pairsEnd] = pairsEnd
      integers[coding + codingFields.foursEnd] = foursEnd
      return bits
    },

    writeValues(values, signs, regions, tables, coding, to, bit) {
      const start = 4 * to
      let written = bit
      /** @param width at most 24 */
      const put = (value: number, width: number) => {
        const at = start + (written >> 3)
        const used = written & 7
        const kept = bytes[at]! & (0xff00 >> used) & 0xff
        view.setUint32(at, (kept << 24) | (value << (32 - used - width)))
        written += width
      }
      const putSign = (i: number) => put(integers[signs + i]! >>> 31, 1)
      const pairsEnd = integers[coding + codingFields.pairsEnd]!
      const ends = [integers[regions + pairsEnd]!, integers[regions + pairsEnd + 1]!, pairsEnd]
      let i = 0
      for (const [region, end] of ends.entries()) {
        const table = integers[coding + codingFields.tables + region]!
        const escape = integers[tables + codeTables.escapeBits + table]!
        const set = table < 16 ? table : table < 24 ? 16 : 17
        for (; i < end; i += 2) {
          if (table === 0) continue
          const [x, y] = [integers[values + i]!, integers[values + i + 1]!]
          const pair = (Math.min(x, 15) << 4) | Math.min(y, 15)
          const code = integers[tables + codeTables.pairCodes + 256 * set + pair]!
          put(code >> 5, code & 31)
          if (escape > 0 && x > 14) put(x - 15, escape)
          if (x > 0) putSign(i)
          if (escape > 0 && y > 14) put(y - 15, escape)
          if (y > 0) putSign(i + 1)
        }
      }
      const fours = tables + codeTables.fourCodes + 16 * integers[coding + codingFields.fourTable]!
      for (; i < integers[coding + codingFields.foursEnd]!; i += 4) {
        const [a, b, c, d] = integers.subarray(values + i, values + i + 4)
        const code = integers[fours + ((a! << 3) | (b! << 2) | (c! << 1) | d!)]!
        put(code >> 5, code & 31)
        for (let j = i; j < i + 4; j++) if (integers[values + j]! > 0) putSign(j)
      }
      const end = start + ((written + 7) >> 3)
      bytes.fill(0, end, end + 8)
      return written
    },
  }
}
