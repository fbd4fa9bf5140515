import { describe, expect, test } from 'vitest'
import { RunSlot } from '../../../src/core/engine/dispatch/attempt/run-slot.js'
import { gate, steppingClock } from '../../engine/harness.js'

describe('a run slot', () => {
  function held({ preemptAfterMs = 10_000 }: { preemptAfterMs?: number | null } = {}) {
    const { now, advance } = steppingClock()
    const slot = new RunSlot({ preemptAfterMs, clock: now })
    const done = gate()
    const ended = slot.hold(() => done.opened)
    return { slot, advance, end: () => (done.open(), ended) }
  }

  test('may be given away after its time, by an attempt that has kept work', () => {
    const { slot, advance } = held()
    advance(60_000)
    expect(slot.mayGiveWay).toBe(false)
    const early = held()
    early.advance(5_000)
    early.slot.noteKept()
    early.advance(4_999)
    expect(early.slot.mayGiveWay).toBe(false)
    early.advance(1)
    expect([early.slot.mayGiveWay, early.slot.heldMs]).toEqual([true, 10_000])
  })

  test('of a resumed attempt is held 50 times as long as resuming took: at most 2 % of the time is lost', () => {
    const { slot, advance } = held()
    // The first kept work lasts 500 ms, so the start took 1.5 s.
    advance(2_000)
    slot.noteKept(500)
    advance(1_000)
    slot.noteKept(500)
    advance(71_999)
    expect(slot.mayGiveWay).toBe(false)
    advance(1)
    expect(slot.mayGiveWay).toBe(true)
  })

  test('is given away once, and not after its work has ended', async () => {
    const { slot, advance, end } = held()
    expect(slot.giveWay()).toBe(false)
    slot.noteKept()
    // Before its time, it yields only to an application that has reserved the slot.
    expect([slot.mayGiveWay, slot.mayGiveWayAtOnce]).toEqual([false, true])
    advance(10_000)
    expect([slot.giveWay(), slot.giveWay(), slot.mayGiveWay, slot.mayGiveWayAtOnce]).toEqual([
      true,
      false,
      false,
      false,
    ])
    const other = held()
    other.slot.noteKept()
    other.advance(10_000)
    await Promise.all([end(), other.end()])
    expect([slot.isHeld, other.slot.giveWay(), other.slot.heldMs]).toEqual([false, false, 0])
  })

  test('is never given away if that is turned off', () => {
    const { slot, advance } = held({ preemptAfterMs: null })
    slot.noteKept()
    advance(1e9)
    expect(slot.mayGiveWay).toBe(false)
  })
})
