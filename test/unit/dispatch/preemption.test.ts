import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Preemption, type SlotHolder } from '../../../src/core/engine/dispatch/preemption.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import { recordingLogger } from '../../engine/harness.js'

describe('preemption', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  const holder = (app: string, heldMs: number, mayGiveWay = true): SlotHolder => ({ app, heldMs, mayGiveWay })

  function looking(holders: SlotHolder[], running: Record<string, number>, logger = silentLogger) {
    const replace = vi.fn(async (_holder: SlotHolder, _belowRunning: number) => {})
    const count = vi.fn(async ({ app = '' }: { app?: string }) => running[app] ?? 0)
    const parts = { jobs: { count }, logger, preemptAfterMs: 10_000, holders: () => holders, replace }
    const preemption = new Preemption(parts)
    preemption.start()
    return { preemption, replace, count }
  }

  test('asks the store for a job every two seconds, while an attempt may give way', async () => {
    const idle = looking([holder('a', 5_000, false)], { a: 1 })
    const { replace } = looking([holder('a', 10_000)], { a: 1 })
    await vi.advanceTimersByTimeAsync(1_999)
    expect(replace).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(4_001)
    expect(replace).toHaveBeenCalledTimes(3)
    expect(idle.count).not.toHaveBeenCalled()
    expect(idle.replace).not.toHaveBeenCalled()
  })

  test('takes the longest held slot of the application with the most running jobs, for one with fewer', async () => {
    const longest = holder('many', 30_000)
    const others = [holder('few', 90_000), holder('many', 20_000), holder('many', 99_000, false)]
    const { replace } = looking([...others, longest], { few: 2, many: 5 })
    await vi.advanceTimersByTimeAsync(2_000)
    expect(replace.mock.calls).toEqual([[longest, 4]])
  })

  test('takes the only slot of an application for one that has none', async () => {
    for (const running of [1, 2]) {
      const only = holder('a', 10_000)
      const { replace } = looking([only], { a: running })
      await vi.advanceTimersByTimeAsync(2_000)
      expect(replace.mock.calls).toEqual([[only, 1]])
    }
  })

  test('looks once at a time, and stops when the last look has ended', async () => {
    const { preemption, replace } = looking([holder('a', 10_000)], { a: 1 })
    let answer = () => {}
    replace.mockImplementation(() => new Promise((resolve) => (answer = resolve)))
    await vi.advanceTimersByTimeAsync(20_000)
    expect(replace).toHaveBeenCalledTimes(1)
    let isStopped = false
    const stopped = preemption.stop().then(() => (isStopped = true))
    await vi.advanceTimersByTimeAsync(20_000)
    expect(isStopped).toBe(false)
    answer()
    await stopped
    await vi.advanceTimersByTimeAsync(20_000)
    expect(replace).toHaveBeenCalledTimes(1)
  })

  test('goes on after the store could not be asked', async () => {
    const { logger, lines } = recordingLogger()
    const { count, replace } = looking([holder('a', 10_000)], { a: 1 }, logger)
    count.mockRejectedValueOnce(new Error('away'))
    await vi.advanceTimersByTimeAsync(4_000)
    expect(lines.map(({ level }) => level)).toEqual(['warn'])
    expect(replace).toHaveBeenCalledTimes(1)
  })

  test('does not look where it is turned off', async () => {
    const replace = vi.fn(async () => {})
    const jobs = { count: async () => 1 }
    const holders = () => [holder('a', 10_000)]
    new Preemption({ jobs, logger: silentLogger, preemptAfterMs: null, holders, replace }).start()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(replace).not.toHaveBeenCalled()
  })
})
