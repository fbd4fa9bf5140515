import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Stages } from '../../src/core/engine/dispatch/attempt/stages.js'

const never = () => new Promise<void>(() => {})

describe('the stage in which inputs are fetched', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  function stages() {
    const onRoom = vi.fn()
    return {
      onRoom,
      fetches: new Stages({ concurrency: 1, slowInputs: 16, slowInputsPerApplication: 4 }, onRoom),
    }
  }

  test('a fetch keeps its slot until it turns out to be slow', () => {
    const { fetches, onRoom } = stages()
    void fetches.fetch('app', never)
    expect([onRoom.mock.calls.length, fetches.slowFetches]).toEqual([0, 0])
    vi.advanceTimersByTime(1000)
    expect([onRoom.mock.calls.length, fetches.slowFetches]).toEqual([1, 1])
  })

  test('an application that has a slow fetch is not waited for again', () => {
    const { fetches, onRoom } = stages()
    void fetches.fetch('slow', never)
    vi.advanceTimersByTime(1000)
    // No time passes from here on: the slots of these are free at once, that of another application's fetch is not.
    for (let n = 2; n <= 4; n++) void fetches.fetch('slow', never)
    expect([onRoom.mock.calls.length, fetches.slowFetches]).toEqual([4, 4])
    expect(fetches.slowApplications).toEqual(['slow'])
    void fetches.fetch('other', never)
    expect(fetches.slowFetches).toBe(4)
  })

  test('once its slow fetches have ended, an application is as any other', async () => {
    const { fetches, onRoom } = stages()
    let end = () => {}
    const first = fetches.fetch('app', () => new Promise<void>((resolve) => (end = resolve)))
    vi.advanceTimersByTime(1000)
    end()
    await first
    void fetches.fetch('app', never)
    expect([onRoom.mock.calls.length, fetches.slowFetches]).toEqual([1, 0])
  })
})
