import { afterAll, expect } from 'vitest'

// Many test files run in one process, one after the other: each must leave the clock and the environment unchanged.
const state = () => {
  const { Date, setImmediate, setInterval, setTimeout, queueMicrotask } = globalThis
  return {
    clock: { Date, setImmediate, setInterval, setTimeout, queueMicrotask, now: performance.now },
    environment: { ...process.env },
    folder: process.cwd(),
  }
}
const before = state()

afterAll(() => expect(state(), 'A test has changed what the next file in this process has, too.').toEqual(before))
