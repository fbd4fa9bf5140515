import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { clockProblem, StoreClock } from '../../src/core/engine/store-clock.js'

const start = 1_700_000_000_000
const year = 365 * 24 * 60 * 60 * 1000
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'], now: start }))
afterEach(() => void vi.useRealTimers())

/** A store whose answers take `answerMs` on the way back, if it is set. */
function store(scope: 'process' | 'shared' = 'shared') {
  const state = { now: start, reads: 0, answerMs: 0 }
  const clock = new StoreClock({
    traits: { scope },
    async time() {
      state.reads++
      const said = state.now
      pass(state.answerMs)
      return said
    },
  })
  /** Lets time pass for both; the node's date also changes by `leapMs`. */
  function pass(ms: number, leapMs = 0) {
    state.now += ms
    vi.advanceTimersByTime(ms)
    vi.setSystemTime(Date.now() + leapMs)
  }
  return { state, clock, pass }
}

test("the store's time is read once, and continues whatever the date of the node", async () => {
  const { state, clock, pass } = store()
  expect(await clock.time()).toBe(start)
  for (const leap of [year, -2 * year]) {
    pass(1000, leap)
    expect(await clock.time()).toBe(state.now)
  }
  expect(state.reads).toBe(1)
  pass(600_000)
  expect([await clock.time(), state.reads]).toEqual([state.now, 2])
})

test('it is never early, however late the answer comes', async () => {
  const { state, clock } = store()
  state.answerMs = 600_000
  expect(await clock.time()).toBe(start)
  expect(state.now).toBe(start + 600_000)
})

test.each([
  [60_000, undefined],
  [60_001, 60_001],
  [-60_001, -60_001],
  [year, year],
])('a date that leaps by %i ms is wrong by %s', async (leap, wrongBy) => {
  const { clock, pass } = store()
  expect(await clock.wrongBy()).toBeUndefined()
  pass(5, leap)
  expect(await clock.wrongBy()).toBe(wrongBy)
})

test('a process that stalled during its request does not call its clock wrong', async () => {
  const { state, clock } = store()
  state.answerMs = 600_000
  expect(await clock.wrongBy()).toBeUndefined()
})

test('a machine that was suspended asks again before it calls its clock wrong', async () => {
  const { state, clock } = store()
  await clock.time()
  // Its date follows the world's, but its monotonic clock was suspended.
  state.now += year
  vi.setSystemTime(start + year)
  expect([await clock.wrongBy(), state.reads]).toEqual([undefined, 2])
  expect(await clock.time()).toBe(start + year)
})

test('a store without a clock of its own is asked each time, and never contradicts the node', async () => {
  const { state, clock, pass } = store('process')
  for (const reads of [1, 2]) {
    pass(1, year)
    expect([await clock.time(), state.reads]).toEqual([state.now, reads])
  }
  expect(await clock.wrongBy()).toBeUndefined()
})

test('the operator is told which way to set the clock', async () => {
  const { clock, pass } = store()
  await clock.time()
  expect(await clockProblem(clock)).toBeUndefined()
  pass(0, 90_000)
  expect(await clockProblem(clock)).toContain('90 s ahead of')
  pass(0, -190_000)
  expect(await clockProblem(clock)).toContain('100 s behind')
})
