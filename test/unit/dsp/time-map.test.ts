import { describe, expect, test } from 'vitest'
import { TimeMap } from '../../../src/core/media/dsp/stretch/time-map.js'

describe('which input is heard at a position of the output', () => {
  const heard = (map: TimeMap, from: number, to: number, step = 1) =>
    Array.from({ length: (to - from) / step + 1 }, (_, i) => map.inputAt(from + i * step))

  test('follows a straight line without onsets, which continues at another ratio', () => {
    const map = new TimeMap(100, 2)
    expect(heard(map, 0, 300, 100)).toEqual([0, 50, 100, 150])
    map.setRatio(0.5, 300)
    expect(heard(map, 300, 500, 100)).toEqual([150, 350, 550])
    map.setRatio(1, 500)
    expect(map.inputAt(510)).toBe(560)
    expect(map.isAtOnset(510)).toBe(false)
    const ahead = (ratio: number) => new TimeMap(100, ratio).lookAhead
    expect([ahead(0.5), ahead(1), ahead(2)].map(Math.round)).toEqual([190, 150, 150])
  })

  test.each([0.5, 2])('is at its own speed around an onset, and led there and back, at a ratio of %f', (ratio) => {
    const map = new TimeMap(100, ratio)
    map.addOnset(1000)
    map.addOnset(3000)
    const at = 1000 * ratio
    const own = (position: number) => map.inputAt(position) - 1000
    const straight = (position: number) => position / ratio
    // A window, or an input window's length of the output, before and after.
    const way = 100 * Math.min(1, ratio)
    expect(map.inputAt(at - 35 - way)).toBeCloseTo(straight(at - 35 - way), 6)
    const half = at - 35 - way / 2
    expect(map.inputAt(half)).toBeCloseTo(straight(half) + (1000 - 35 - straight(at - 35)) / 2, 6)
    expect([map.isAtOnset(at - 36), map.isAtOnset(at - 35)]).toEqual([false, true])
    for (const offset of [-35, 0, 30]) expect(own(at + offset)).toBeCloseTo(offset, 6)
    expect([map.isAtOnset(at + 30), map.isAtOnset(at + 31)]).toEqual([true, false])
    const back = at + 30 + way / 2
    expect(map.inputAt(back)).toBeCloseTo(straight(back) + (1000 + 30 - straight(at + 30)) / 2, 6)
    expect(map.inputAt(at + 30 + way)).toBeCloseTo(straight(at + 30 + way), 6)
    expect(map.inputAt(3000 * ratio)).toBeCloseTo(3000, 6)
  })

  test('has less of a way between onsets that are near, and none back from before another ratio', () => {
    const map = new TimeMap(100, 2)
    map.addOnset(1000)
    map.addOnset(1040)
    expect(map.inputAt(2030)).toBeCloseTo(1030, 6)
    // From 2030 to 2045: from 15 ahead of the line to 17.5 behind it.
    const middle = 2037.5
    expect(map.inputAt(middle)).toBeCloseTo(middle / 2 + (15 - 17.5) / 2, 6)
    expect(map.inputAt(2080)).toBeCloseTo(1040, 6)
    map.inputAt(2111)
    map.setRatio(1, 2111)
    const [first, second] = [map.inputAt(2111), map.inputAt(2121)]
    expect(second - first).toBeCloseTo(10, 6)
  })

  test('continues from its position at another ratio, even on its way back from an onset', () => {
    const map = new TimeMap(100, 2)
    map.addOnset(1000)
    expect(map.isAtOnset(2000)).toBe(true)
    const at = map.inputAt(2060)
    map.setRatio(1, 2060)
    expect(map.ratio).toBe(1)
    map.addOnset(at + 90)
    for (const further of [0, 10, 50]) expect(map.inputAt(2060 + further)).toBeCloseTo(at + further, 6)
    expect([map.isAtOnset(2114), map.isAtOnset(2116)]).toEqual([false, true])
  })
})
