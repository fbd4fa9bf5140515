import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Stages } from '../../../src/core/engine/dispatch/attempt/stages.js'
import { gate } from '../harness.js'

const never = () => new Promise<void>(() => {})

describe('the stage in which inputs are fetched', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  function stages({ slowInputs = 16, slowInputsPerApplication = 4 } = {}) {
    const onRoom = vi.fn()
    const fetches = new Stages({ concurrency: 1, slowInputs, slowInputsPerApplication }, onRoom, () => {})
    /** A download that ends when it loses its slot. */
    const download = (app: string) => {
      let end = () => {}
      const onCrowded = vi.fn(() => end())
      const ended = fetches.fetch({ app, work: () => new Promise<void>((resolve) => (end = resolve)), onCrowded })
      return { onCrowded, ended, end: () => end() }
    }
    return { onRoom, fetches, download }
  }

  test('a fetch keeps its slot until it turns out to be slow', () => {
    const { fetches, onRoom, download } = stages()
    download('app')
    expect([onRoom.mock.calls.length, fetches.withoutSlot]).toEqual([0, 0])
    vi.advanceTimersByTime(1000)
    expect([onRoom.mock.calls.length, fetches.withoutSlot]).toEqual([1, 1])
  })

  test('an application that has a slow fetch is not waited for again', () => {
    const { fetches, onRoom, download } = stages()
    download('slow')
    vi.advanceTimersByTime(1000)
    // No time passes from here on: these slots are free at once, that of another application's fetch is not.
    for (let n = 2; n <= 4; n++) download('slow')
    expect([onRoom.mock.calls.length, fetches.withoutSlot]).toEqual([4, 4])
    expect(fetches.slowApplications).toEqual(['slow'])
    download('other')
    expect(fetches.withoutSlot).toBe(4)
  })

  test('once its slow fetches have ended, an application is treated like any other', async () => {
    const { fetches, onRoom, download } = stages()
    const first = download('app')
    vi.advanceTimersByTime(1000)
    first.end()
    await first.ended
    download('app')
    expect([onRoom.mock.calls.length, fetches.withoutSlot]).toEqual([1, 0])
  })

  test('if all slots are taken, an application without one gets a slot of the application with the most', () => {
    const { fetches, download } = stages({ slowInputs: 4 })
    const large = [1, 2, 3].map(() => download('large'))
    const small = download('small')
    vi.advanceTimersByTime(1000)
    const newcomer = download('newcomer')
    vi.advanceTimersByTime(1000)
    expect([...large, small, newcomer].map(({ onCrowded }) => onCrowded.mock.calls.length)).toEqual([0, 0, 1, 0, 0])
    expect(fetches.withoutSlot).toBe(4)
  })

  test('a download without a slot ends, and no more of its application are begun until one is free', async () => {
    const { fetches, download } = stages({ slowInputs: 2 })
    const [first] = [download('a'), download('b')]
    vi.advanceTimersByTime(1000)
    const late = download('late')
    vi.advanceTimersByTime(1000)
    expect(late.onCrowded).toHaveBeenCalledTimes(1)
    expect(fetches.slowApplications.toSorted()).toEqual(['a', 'b', 'late'])
    await late.ended
    expect(fetches.slowApplications).toContain('late')
    first.end()
    await first.ended
    expect(fetches.slowApplications).toEqual([])
  })

  test('inputs that are already here take no slot from others, and need none', () => {
    const { fetches, download } = stages({ slowInputs: 4 })
    const large = [1, 2, 3, 4].map(() => download('large'))
    vi.advanceTimersByTime(1000)
    void fetches.fetch({ app: 'other', work: never })
    vi.advanceTimersByTime(1000)
    expect(large.some(({ onCrowded }) => onCrowded.mock.calls.length > 0)).toBe(false)
    expect([fetches.withoutSlot, fetches.slowApplications]).toEqual([4, ['large']])
  })

  test('inputs that are already here take a slot only if one is free, and quick ones take none', async () => {
    const { fetches, onRoom } = stages({ slowInputs: 3, slowInputsPerApplication: 1 })
    await fetches.fetch({ app: 'quick', work: async () => {} })
    for (const app of ['slow', 'slow', 'other']) void fetches.fetch({ app, work: never })
    vi.advanceTimersByTime(1000)
    expect([onRoom.mock.calls.length, fetches.withoutSlot]).toEqual([2, 2])
  })

  test('the more slots are taken, the faster an input has to arrive', () => {
    const { fetches, download } = stages({ slowInputs: 8 })
    const hastes = [fetches.haste()]
    for (let n = 1; n <= 8; n++) {
      download(`app ${n}`)
      vi.advanceTimersByTime(1000)
      hastes.push(fetches.haste())
    }
    expect(hastes.map((haste) => Math.round(haste))).toEqual([1, 1, 1, 1, 1, 3, 8, 23, 64])
  })
})

describe('the stage in which attempts run', () => {
  const settled = () => new Promise((resolve) => setImmediate(resolve))

  /** Two runs that compete for one slot; each ends when the test opens its gate. */
  function twoRuns(signals: readonly AbortSignal[] = []) {
    const onRoom = vi.fn()
    const stages = new Stages({ concurrency: 1, slowInputs: 1, slowInputsPerApplication: 1 }, onRoom, () => {})
    const begun: number[] = []
    const run = (n: 0 | 1) => {
      const { opened, open } = gate()
      const onNoSlot = vi.fn()
      const work = async () => {
        begun.push(n)
        await opened
        return n
      }
      const ended = stages.run(signals[n] ?? new AbortController().signal, work, onNoSlot)
      ended.catch(() => {})
      return { ended, open, onNoSlot }
    }
    return { stages, onRoom, begun, runs: [run(0), run(1)] as const }
  }

  test('one begins when the other has ended, however it ended, and is told that it has to wait', async () => {
    const { runs, begun, stages } = twoRuns()
    await settled()
    expect(begun).toEqual([0])
    expect(runs[0].onNoSlot).not.toHaveBeenCalled()
    expect(runs[1].onNoSlot).toHaveBeenCalledTimes(1)
    runs[0].open()
    expect(await runs[0].ended).toBe(0)
    const failing = stages.run(new AbortController().signal, () => Promise.reject(new Error('broken')))
    runs[1].open()
    expect(await runs[1].ended).toBe(1)
    await expect(failing).rejects.toThrow('broken')
    expect(await stages.run(new AbortController().signal, async () => 'next')).toBe('next')
  })

  test("one that waits ends at once with its signal's reason; one that runs keeps its slot to its end", async () => {
    const [running, waiting] = [new AbortController(), new AbortController()]
    const { runs, begun, stages } = twoRuns([running.signal, waiting.signal])
    await settled()
    running.abort(new Error('stop'))
    waiting.abort(new Error('canceled'))
    await expect(runs[1].ended).rejects.toThrow('canceled')
    const onNoSlot = vi.fn()
    const third = stages.run(new AbortController().signal, async () => 'third', onNoSlot)
    expect(onNoSlot).toHaveBeenCalledTimes(1)
    runs[0].open()
    expect([await runs[0].ended, await third]).toEqual([0, 'third'])
    expect(begun).toEqual([0])
    await expect(stages.run(AbortSignal.abort(new Error('too late')), async () => 'never')).rejects.toThrow('too late')
  })

  test('the end of one is written without a slot, whatever the outcome', async () => {
    const { stages, onRoom } = twoRuns()
    const { opened, open } = gate()
    const ended = stages.end(async () => {
      await opened
      throw new Error('the store is away')
    })
    expect([stages.withoutSlot, onRoom.mock.calls.length]).toEqual([1, 1])
    open()
    await expect(ended).rejects.toThrow('the store is away')
    expect(stages.withoutSlot).toBe(0)
    expect(await stages.end(async () => 'written')).toBe('written')
  })

  test('of many whose ends the store does not write, only a hundred leave their slots to others', async () => {
    const { stages } = twoRuns()
    const { opened, open } = gate()
    const ends = Array.from({ length: 150 }, () => stages.end(() => opened))
    expect(stages.withoutSlot).toBe(100)
    open()
    await Promise.all(ends)
    expect(stages.withoutSlot).toBe(0)
  })
})
