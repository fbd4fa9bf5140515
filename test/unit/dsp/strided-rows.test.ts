import { describe, expect, test } from 'vitest'
import { FloatPlanes } from '../../../src/core/media/dsp/float-planes.js'
import { FloatPool } from '../../../src/core/media/dsp/float-pool.js'
import { copyRows } from '../../../src/core/media/dsp/strided-rows.js'
import { noise } from '../../separation/tracks.js'

const layouts = [0, 1, 3, 15, 16, 17].flatMap((rows) => [
  {
    name: `${rows} rows, bins outside`,
    size: { rows, length: 7 },
    own: { start: 5, pitch: 9, stride: 1 },
    other: { start: 3, pitch: 1, stride: 19 },
  },
  {
    name: `${rows} rows in pairs`,
    size: { rows, length: 4 },
    own: { start: 0, pitch: 4, stride: 1 },
    other: { start: 0, pitch: 10, stride: 2 },
  },
])

describe('rows at strided positions', () => {
  test.each(layouts)('$name are copied there and back, and nothing else is touched', ({ size, own, other }) => {
    const source = noise(400)
    const there = noise(400, 2)
    const back = noise(400, 3)
    const expected = there.slice()
    const expectedBack = back.slice()
    for (let row = 0; row < size.rows; row++) {
      for (let i = 0; i < size.length; i++) {
        const at = own.start + row * own.pitch + i
        expected[other.start + row * other.pitch + i * other.stride] = source[at]!
        expectedBack[at] = source[at]!
      }
    }
    copyRows(source, own, there, other, size)
    expect(there).toEqual(expected)
    copyRows(there, other, back, own, size)
    expect(back).toEqual(expectedBack)
  })
})

describe('buffers that are reused', () => {
  test('a pool gives back the first that is large enough', () => {
    const pool = new FloatPool()
    const [small, large] = [pool.take(10), pool.take(20)]
    expect([small.length, large.length]).toEqual([10, 20])
    large.fill(3)
    pool.give(small)
    pool.give(large)
    const again = pool.take(11)
    expect(again).toEqual(new Float32Array(11).fill(3))
    expect(again.buffer).toBe(large.buffer)
    expect(pool.take(10).buffer).toBe(small.buffer)
    const buffers = [small.buffer, large.buffer]
    expect(buffers).not.toContain(pool.take(1).buffer)
  })

  test('planes keep their memory until they need more', () => {
    const planes = new FloatPlanes()
    const [first] = planes.take(1, 8)
    expect(first).toEqual(new Float32Array(8))
    const [same, second] = planes.take(2, 8)
    expect([same!.buffer, second!.length]).toEqual([first!.buffer, 8])
    expect(planes.take(1, 3)[0]!.buffer).toBe(first!.buffer)
    expect(planes.take(1, 3)[0]).toHaveLength(3)
    expect(planes.take(1, 9)[0]).toHaveLength(9)
  })

  test('planes may be as short as one sample, or empty', () => {
    expect(new FloatPlanes().take(1, 1)).toEqual([new Float32Array(1)])
    expect(new FloatPlanes().take(1, 0)).toEqual([new Float32Array(0)])
  })

  test('a difference is taken sample by sample in each channel', () => {
    const [a, b] = [5, 6].map((seed) => [noise(10, seed), noise(10, seed + 10)])
    const found = new FloatPlanes().difference(a!, b!)
    expect(new FloatPlanes().difference([a![0]!], [b![0]!])).toEqual([found[0]])
    expect(found).toEqual([0, 1].map((channel) => a![channel]!.map((value, i) => value - b![channel]![i]!)))
  })
})
