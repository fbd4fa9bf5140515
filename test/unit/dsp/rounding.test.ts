import { describe, expect, test } from 'vitest'
import { Dither } from '../../../src/core/media/dsp/dither.js'
import { quantize } from '../../../src/core/media/dsp/quantize.js'
import { noise } from '../../separation/tracks.js'

describe('rounding to integers', () => {
  test('rounds halves upwards and limits to what 16 bits hold', () => {
    const values = [0, 0.4, 0.5, -0.5, -0.6, 1.5, 32_766.4, 32_766.5, 32_767, -32_768, -32_768.5, -32_768.6]
    const plane = Float32Array.from([...values.map((value) => value / 32_768), 1, 2, -2, NaN])
    const samples = new Int16Array(plane.length)
    expect(quantize(plane, samples, 0, 1, 32_768)).toBe(4)
    expect([...samples]).toEqual([
      0, 0, 1, 0, -1, 2, 32_766, 32_767, 32_767, -32_768, -32_768, -32_768, 32_767, 32_767, -32_768, 0,
    ])
  })

  test('limits to what 24 bits hold', () => {
    const samples = new Int32Array(3)
    expect(quantize(Float32Array.of(1.5, -1.5, -1), samples, 0, 1, 2 ** 23)).toBe(2)
    expect([...samples]).toEqual([2 ** 23 - 1, -(2 ** 23), -(2 ** 23)])
  })

  test('writes every so many samples, from an offset on', () => {
    const samples = new Int32Array(11).fill(9)
    expect(quantize(Float32Array.of(0.5, -0.25, 0), samples, 1, 3, 8)).toBe(0)
    expect([...samples]).toEqual([9, 4, 9, 9, -2, 9, 9, 0, 9, 9, 9])
  })
})

describe('dither', () => {
  test('is noise of two even distributions: mean 0, variance of a sixth of a step squared, within a step', () => {
    const count = 50_000
    for (const bits of [16, 24] as const) {
      const full = 2 ** (bits - 1)
      // Between two integers, and small enough for single precision to hold the noise.
      const [plane] = new Dither(bits).apply([new Float32Array(count).fill(0.5 / full)])
      const steps = [...plane!].map((value) => value * full - 0.5)
      const mean = steps.reduce((sum, step) => sum + step, 0) / count
      expect(Math.abs(mean)).toBeLessThan(0.01)
      expect(steps.reduce((sum, step) => sum + step * step, 0) / count).toBeCloseTo(1 / 6, 2)
      expect(Math.max(...steps.map(Math.abs))).toBeGreaterThan(0.98)
      expect(Math.max(...steps.map(Math.abs))).toBeLessThanOrEqual(1)
      // Triangular: within half a step in three quarters of the cases.
      expect(steps.filter((step) => Math.abs(step) < 0.5).length / count).toBeCloseTo(0.75, 1)
      // White: each value is independent of the previous one.
      const products = steps.slice(1).reduce((sum, step, i) => sum + step * steps[i]!, 0) / count
      expect(Math.abs(products)).toBeLessThan(0.005)
    }
  })

  test('follows the published generator of Marsaglia, from the same start every time', () => {
    let state = 0x2545_f491n
    const random = () => {
      const mask = 0xffff_ffffn
      state = (state ^ (state << 13n)) & mask
      state ^= state >> 17n
      state = (state ^ (state << 5n)) & mask
      return Number(state) / 2 ** 32
    }
    const plane = new Float32Array(3000).fill(0.25 / 32_768)
    const expected = plane.map((value) => value + (random() - random()) / 32_768)
    expect(new Dither(16).apply([plane])).toEqual([expected])
  })

  test('leaves runs of integers as they are, and what it is given unchanged', () => {
    const dither = new Dither(16)
    const integers = noise(2048).map((value) => Math.round(value * 100) / 32_768)
    const plane = integers.slice()
    plane[1500] = 0.3 / 32_768
    const before = plane.slice()
    const [same, disturbed] = dither.apply([integers, plane])
    expect(same).toBe(integers)
    expect(plane).toEqual(before)
    expect(disturbed!.subarray(0, 1024)).toEqual(plane.subarray(0, 1024))
    const changed = disturbed!.subarray(1024).filter((value, i) => value !== plane[1024 + i])
    expect(changed.length).toBeGreaterThan(1000)
  })

  test('continues through a plane of several runs', () => {
    const plane = new Float32Array(3000).fill(0.3 / 32_768)
    const [disturbed] = new Dither(16).apply([plane])
    for (const from of [0, 1024, 2048]) expect(new Set(disturbed!.subarray(from, from + 900)).size).toBeGreaterThan(800)
  })
})
