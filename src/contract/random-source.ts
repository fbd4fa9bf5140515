/** Numbers from 0 (inclusive) to 1 (exclusive). */
export type RandomSource = () => number

/** Repeatable pseudo-random numbers (mulberry32, Tommy Ettinger, public domain). */
export function randomSource(seed: number): RandomSource {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
