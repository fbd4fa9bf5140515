import { expect, test } from 'vitest'
import { clickSound } from '../../../src/core/media/dsp/click-sound.js'
import { SampleWindow } from '../../../src/core/media/dsp/sample-window.js'

const numbers = (from: number, to: number, sign = 1) =>
  Float32Array.from({ length: to - from }, (_, i) => sign * (from + i))
const both = (from: number, to: number) => [numbers(from, to), numbers(from, to, -1)]

test('a window has the samples from its start to its end, whatever it had room for and was cut to', () => {
  const window = new SampleWindow(2, 4, 100)
  expect([window.start, window.end]).toEqual([100, 100])
  window.append(both(100, 104))
  const [first] = window.planes
  // The window had room for these samples only.
  window.append(both(104, 106))
  expect(window.planes[0]).not.toBe(first)
  expect(window.planes.map(({ length }) => length)).toEqual([12, 12])
  expect(window.views(100, 106)).toEqual(both(100, 106))
  window.dropBefore(103)
  expect([window.start, window.end]).toEqual([103, 106])
  expect(window.views(104, 106)).toEqual(both(104, 106))
  const [second] = window.planes
  window.append(both(106, 115))
  expect(window.planes[0]).toBe(second)
  expect(window.views(103, 115)).toEqual(both(103, 115))
  for (const position of [103, 0]) window.dropBefore(position)
  expect(window.views(window.start, window.end)).toEqual(both(103, 115))
  window.dropBefore(1000)
  expect([window.start, window.end]).toEqual([115, 115])
  // Dropping one sample drops only that; dropping none, or fewer, drops nothing.
  const short = new SampleWindow(1, 8, 10)
  short.append([numbers(10, 16)])
  short.dropBefore(11)
  expect([short.start, short.views(11, 16)]).toEqual([11, [numbers(11, 16)]])
  for (const position of [11, 0]) short.dropBefore(position)
  expect([short.start, short.views(11, 16)]).toEqual([11, [numbers(11, 16)]])
  const fresh = new SampleWindow(1, 2)
  fresh.append([numbers(0, 2)])
  expect([fresh.start, fresh.end, fresh.planes[0]?.length]).toEqual([0, 2, 2])
})

test('a click is a tone that decays within 30 ms, high and loud on the first beat of a bar', () => {
  for (const [kind, hertz, level] of [
    ['accent', 1600, 0.8],
    ['beat', 1000, 0.4],
  ] as const) {
    const click = clickSound(kind, 44_150)
    expect(click).toHaveLength(1325)
    const wanted = (i: number) => level * Math.exp(-i / 44_150 / 0.006) * Math.cos((2 * Math.PI * hertz * i) / 44_150)
    click.forEach((value, i) => expect(value).toBeCloseTo(wanted(i), 6))
  }
})
