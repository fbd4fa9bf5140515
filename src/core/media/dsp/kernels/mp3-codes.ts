/** The MP3 kernels that handle codes (ISO/IEC 11172-3, 2.4.1.7). */
export interface Mp3CodeKernels {
  /**
   * Finds the shortest codes of magnitudes: pairs in three regions with a table each, then fours of 0 and 1, then
   * zeros. Writes six integers (`codingFields`).
   *
   * @param values as integers, at most 8206; an even count
   * @param regions ends of the first and the second region, as integers, for each even number of values in pairs
   * @param tables see `codeTables`
   * @returns how many bits the codes and signs take
   */
  chooseCodes(values: number, count: number, regions: number, tables: number, coding: number): number
  /**
   * Writes the codes that `chooseCodes` chose, and the signs, after the `bit` bits that `to` holds already. The next
   * eight bytes become 0.
   *
   * @returns how many bits `to` holds now
   */
  writeValues(
    values: number,
    signs: number,
    regions: number,
    tables: number,
    coding: number,
    to: number,
    bit: number,
  ): number
}

/**
 * Fields that `chooseCodes` writes: the tables of the regions and of the fours, the end of the pairs and of the fours.
 */
export const codingFields = { tables: 0, fourTable: 3, pairsEnd: 4, foursEnd: 5, count: 6 } as const

/** Offsets in the tables of codes, in floats. */
export const codeTables = (() => {
  let at = 0
  const take = (floats: number) => (at += floats) - floats
  return {
    /**
     * By the largest value, up to 15 or more: the bits of each pair with its signs in up to four tables, 16 bits for
     * each.
     */
    pairLengths: take(17 * 256 * 2),
    /** The same of four values of 0 and 1. */
    fourLengths: take(16 * 2),
    /**
     * These tables, at most four, by the largest value, or from 16 on by its number of bits beyond 15: integers, filled
     * up with 0.
     */
    candidates: take(30 * 4),
    /** Bits for a value from 15 on in each table, after the code. */
    escapeBits: take(32),
    /** Each pair's code times 32, and its length. The tables from 16 on share one set, as do those from 24 on. */
    pairCodes: take(18 * 256),
    fourCodes: take(2 * 16),
    end: at,
  } as const
})()
