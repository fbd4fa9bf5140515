import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { applicationShares } from '../../../src/core/engine/dispatch/application-shares.js'
import { RunSlot } from '../../../src/core/engine/dispatch/attempt/run-slot.js'
import { preemption as preemptionOf, type SlotHolder } from '../../../src/core/engine/dispatch/preemption.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import { recordingLogger } from '../../engine/harness.js'

describe('preemption', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  const holder = (app: string, heldMs: number, mayGiveWay = true, mayGiveWayAtOnce = mayGiveWay): SlotHolder => ({
    app,
    slot: { heldMs, mayGiveWay, mayGiveWayAtOnce },
  })
  const equalShares = applicationShares({})

  function looking(
    holders: SlotHolder[],
    running: Record<string, number>,
    logger = silentLogger,
    shares = equalShares,
  ) {
    const replace = vi.fn(async (_holder: SlotHolder, _claimable: object) => false)
    const count = vi.fn(async ({ app = '' }: { app?: string }) => running[app] ?? 0)
    const parts = { jobs: { count }, logger, preemptAfterMs: 10_000, shares, holders: () => holders, replace }
    const preemption = preemptionOf(parts)
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
    expect(replace.mock.calls).toEqual([[longest, { belowRunning: 4 }]])
  })

  test('takes the only slot of an application for one that has none', async () => {
    for (const running of [1, 2]) {
      const only = holder('a', 10_000)
      const { replace } = looking([only], { a: running })
      await vi.advanceTimersByTimeAsync(2_000)
      expect(replace.mock.calls).toEqual([[only, { belowRunning: 1 }]])
    }
  })

  test('takes a slot at once for an application that has it reserved, and none that is reserved', async () => {
    const shares = applicationShares({ urgent: { reserved: 2 }, steady: { reserved: 1 } })
    const long = holder('long', 20)
    const brief = holder('brief', 10, false, true)
    const holders = [holder('steady', 9_000, true), brief, long]
    const { replace } = looking(holders, { steady: 1, brief: 3, long: 2 }, silentLogger, shares)
    replace.mockResolvedValueOnce(true)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(replace.mock.calls).toEqual([[brief, { onlyApps: ['urgent'], belowRunning: 2 }]])
    // No job waits for the reserved slot any longer.
    await vi.advanceTimersByTimeAsync(2_000)
    expect(replace.mock.calls.slice(1)).toEqual([
      [brief, { onlyApps: ['urgent'], belowRunning: 2 }],
      [brief, { onlyApps: ['steady'], belowRunning: 1 }],
      [long, { belowRunning: 1 }],
    ])
  })

  test('of applications with as many running jobs takes the slot of the first, and counts what runs', async () => {
    const [first, second] = [holder('a', 10_000), holder('b', 90_000)]
    const { replace, count } = looking([first, second], { a: 3, b: 3 })
    await vi.advanceTimersByTimeAsync(2_000)
    expect(replace.mock.calls).toEqual([[first, { belowRunning: 2 }]])
    expect(count.mock.calls).toEqual([
      [{ app: 'a', statuses: ['STARTED'] }, { max: 1000 }],
      [{ app: 'b', statuses: ['STARTED'] }, { max: 1000 }],
    ])
  })

  test('takes no slot for a reservation where none may go at once, nor one of its own application', async () => {
    const shares = applicationShares({ urgent: { reserved: 2 } })
    const holders = [holder('urgent', 9_000, false, true), holder('long', 9_000, true, false)]
    const { replace } = looking(holders, { urgent: 5, long: 2 }, silentLogger, shares)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(replace.mock.calls).toEqual([[holders[1], { belowRunning: 1 }]])
  })

  test('takes no slot of an application that has no more than its reservation', async () => {
    const shares = applicationShares({ steady: { reserved: 2 } })
    const { replace } = looking([holder('steady', 9_000)], { steady: 2 }, silentLogger, shares)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(replace).not.toHaveBeenCalled()
    const more = looking([holder('steady', 9_000)], { steady: 3 }, silentLogger, shares)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(more.replace).toHaveBeenCalledTimes(1)
  })

  test('looks five times in the time after which slots are given away, at most a hundred times a second', async () => {
    for (const [preemptAfterMs, everyMs] of [
      [1_000, 200],
      [5, 10],
    ] as const) {
      const holders = vi.fn(() => [])
      const jobs = { count: async () => 0 }
      const preemption = preemptionOf({
        jobs,
        logger: silentLogger,
        preemptAfterMs,
        shares: equalShares,
        holders,
        replace: async () => false,
      })
      preemption.start()
      preemption.start()
      await vi.advanceTimersByTimeAsync(10 * everyMs)
      expect(holders).toHaveBeenCalledTimes(10)
      await preemption.stop()
    }
  })

  test('looks once at a time, and stops when the last look has ended', async () => {
    const { preemption, replace } = looking([holder('a', 10_000)], { a: 1 })
    let answer = () => {}
    replace.mockImplementation(() => new Promise((resolve) => (answer = () => resolve(true))))
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

  test('continues after the store could not be asked', async () => {
    const { logger, lines } = recordingLogger()
    const { count, replace } = looking([holder('a', 10_000)], { a: 1 }, logger)
    count.mockRejectedValueOnce(new Error('away'))
    await vi.advanceTimersByTimeAsync(4_000)
    expect(lines.map(({ level }) => level)).toEqual(['warn'])
    expect(replace).toHaveBeenCalledTimes(1)
  })

  test('a job of 10 s begins within 15 s after hour-long ones, which lose at most 2 % of their time', async () => {
    const [checkpointMs, goesOnInMs, hour] = [1_000, 150, 3_600_000]
    const running: (SlotHolder & { giveWay(): void })[] = []
    const waiting: number[] = []
    const waits: number[] = []
    let spentMs = 0
    /** An attempt of an hour-long job that holds its slot until it yields. */
    const runLong = (goesOn: boolean) => {
      const slot = new RunSlot({ preemptAfterMs: 10_000, clock: Date.now })
      const stopped = new AbortController()
      void slot.hold(() => new Promise<void>((resolve) => stopped.signal.addEventListener('abort', () => resolve())))
      if (goesOn) spentMs += goesOnInMs
      const keep = () => slot.noteKept(goesOn ? checkpointMs : undefined)
      setTimeout(keep, goesOn ? goesOnInMs + checkpointMs : 5_000)
      const attempt = {
        app: 'long',
        slot,
        giveWay() {
          expect(slot.giveWay()).toBe(true)
          stopped.abort()
          running.splice(running.indexOf(attempt), 1)
          waits.push(Date.now() - (waiting.shift() ?? 0))
          setTimeout(() => runLong(true), 10_000)
        },
      }
      running.push(attempt)
    }
    for (let slots = 0; slots < 4; slots++) runLong(false)
    preemptionOf<(typeof running)[number]>({
      jobs: { count: async () => 4 },
      logger: silentLogger,
      preemptAfterMs: 10_000,
      shares: equalShares,
      holders: () => running,
      async replace(holder) {
        if (waiting.length > 0) holder.giveWay()
        return false
      },
    }).start()
    const comes = setInterval(() => waiting.push(Date.now()), 25_000)
    await vi.advanceTimersByTimeAsync(hour)
    clearInterval(comes)
    expect(waits.length).toBeGreaterThan(100)
    expect(Math.max(...waits)).toBeLessThanOrEqual(15_000)
    expect(spentMs / (4 * hour)).toBeLessThan(0.02)
  })

  test('does not look if it is turned off', async () => {
    const replace = vi.fn(async () => false)
    const jobs = { count: async () => 1 }
    const holders = () => [holder('a', 10_000)]
    preemptionOf({ jobs, logger: silentLogger, preemptAfterMs: null, shares: equalShares, holders, replace }).start()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(replace).not.toHaveBeenCalled()
  })
})
