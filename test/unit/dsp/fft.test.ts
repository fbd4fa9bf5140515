import { describe, expect, test } from 'vitest'
import { RealFft } from '../../../src/core/media/dsp/fft.js'
import { noise } from '../../separation/tracks.js'

/** A bin by the definition of the transform: its real and imaginary parts. */
function bin(frame: Float32Array, index: number): [number, number] {
  let [re, im] = [0, 0]
  frame.forEach((value, n) => {
    re += value * Math.cos((2 * Math.PI * index * n) / frame.length)
    im -= value * Math.sin((2 * Math.PI * index * n) / frame.length)
  })
  return [re, im]
}

describe('the FFT of real frames', () => {
  test.each([32, 96, 160])('of %i points is the sum of the definition, for each row of a batch', async (size) => {
    const fft = await RealFft.create(size, 3)
    const frames = [1, 2, 3].map((seed) => noise(size, seed))
    frames.forEach((frame, row) => fft.time().set(frame, row * size))
    expect(fft.time()).toHaveLength(3 * size)
    fft.spectrum().fill(7)
    fft.forward(2)
    const spectrum = fft.spectrum().slice()
    expect(spectrum).toHaveLength(3 * size)
    for (const [row, frame] of frames.slice(0, 2).entries()) {
      const expected = [bin(frame, 0)[0], bin(frame, size / 2)[0]]
      for (let index = 1; index < size / 2; index++) expected.push(...bin(frame, index))
      expected.forEach((value, i) => expect(Math.abs(spectrum[row * size + i]! - value)).toBeLessThan(1e-5))
    }
    expect(spectrum.subarray(2 * size)).toEqual(new Float32Array(size).fill(7))

    fft.time().fill(9)
    fft.inverse(2)
    for (const [row, frame] of frames.slice(0, 2).entries())
      frame.forEach((value, n) => expect(Math.abs(fft.time()[row * size + n]! / size - value)).toBeLessThan(1e-6))
    expect(fft.time().subarray(2 * size)).toEqual(new Float32Array(size).fill(9))
    fft.close()
  })

  test('of many points has as many bins, and needs no stack for them', async () => {
    const size = 2 ** 17
    const fft = await RealFft.create(size)
    fft.time().fill(0)
    fft.time()[0] = 1
    fft.forward(1)
    // Transform of an impulse: all bins are 1.
    expect(fft.spectrum().every((value, i) => value === (i < 2 || i % 2 === 0 ? 1 : 0))).toBe(true)
    fft.close()
  })

  test('has one frame unless more are requested', async () => {
    const fft = await RealFft.create(64)
    expect([fft.size, fft.batch, fft.time().length, fft.spectrum().length]).toEqual([64, 1, 64, 64])
    fft.close()
  })

  test.each([0, -32, 16, 48, 33, 32.5, 224, 32 * 7 * 5, NaN, Infinity])('of %d points is refused', async (size) => {
    await expect(RealFft.create(size)).rejects.toThrow(RangeError)
  })

  test('frees all its memory', async () => {
    const size = 2 ** 17
    const use = async () => {
      const fft = await RealFft.create(size)
      const bytes = fft.time().buffer.byteLength
      fft.close()
      return bytes
    }
    const first = await use()
    for (let turn = 0; turn < 60; turn++) await use()
    expect(await use()).toBe(first)
  })
})
