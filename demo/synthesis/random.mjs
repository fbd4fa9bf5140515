/** Returns a generator of numbers that are the same in every run and on every machine (mulberry32). */
export function randomNumbers(seed) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return { uniform: (low = 0, high = 1) => low + (high - low) * next(), noise: () => 2 * next() - 1 }
}
