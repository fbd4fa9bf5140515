import { afterAll, beforeAll, expect } from 'vitest'

// Many test files run in one process, one after another: each must leave the clock and the environment unchanged.
const clock = () => {
  const { Date, setImmediate, setInterval, setTimeout, queueMicrotask } = globalThis
  return { Date, setImmediate, setInterval, setTimeout, queueMicrotask, now: performance.now }
}
const state = () => ({ clock: clock(), environment: { ...process.env }, folder: process.cwd() })
const before = state()

afterAll(() => expect(state(), 'A test has changed what the next file in this process has, too.').toEqual(before))

// Between two files, the runner restores spied functions, which may be fakes.
const shared = globalThis as { firstClock?: ReturnType<typeof clock> }
const first = (shared.firstClock ??= clock())
beforeAll(() => expect(clock(), 'An earlier file in this process has left its clock.').toEqual(first))
