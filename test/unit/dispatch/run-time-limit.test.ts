import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { runTimeLimit } from '../../../src/core/engine/dispatch/attempt/run-time-limit.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('counts only the time between start and pause', () => {
  const onEnd = vi.fn()
  const limit = runTimeLimit(100, onEnd)
  limit.pause()
  vi.advanceTimersByTime(1000)
  limit.start()
  vi.advanceTimersByTime(60)
  limit.pause()
  vi.advanceTimersByTime(1000)
  limit.pause()
  limit.start()
  vi.advanceTimersByTime(39)
  limit.start()
  expect(onEnd).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(onEnd).toHaveBeenCalledOnce()
  vi.advanceTimersByTime(1000)
  expect(onEnd).toHaveBeenCalledOnce()
})

test('ends at once when nothing is left', () => {
  const onEnd = vi.fn()
  runTimeLimit(-5, onEnd).start()
  vi.advanceTimersByTime(0)
  expect(onEnd).toHaveBeenCalledOnce()
})

test('does not keep the process alive', () => {
  vi.useRealTimers()
  const timersThatDo = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timersThatDo()
  const limit = runTimeLimit(60_000, () => {})
  limit.start()
  expect(timersThatDo()).toBe(before)
  limit.pause()
})
