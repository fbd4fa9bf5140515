/** A clock that stands still until a test advances it. */
export function settableClock(start = Date.UTC(2026, 0, 1)): {
  clock: () => number
  advance: (milliseconds: number) => void
} {
  let now = start
  return {
    clock: () => now,
    advance(milliseconds) {
      now += milliseconds
    },
  }
}
