import { expect, test } from 'vitest'
import { ComplexFft } from '../../../src/core/media/dsp/stretch/complex-fft.js'
import { noise } from '../../separation/tracks.js'

test('a complex transform is the sum that defines it, for powers of two from 4 on', () => {
  for (const size of [4, 8, 16, 32, 64]) {
    const fft = new ComplexFft(size)
    expect(fft.size).toBe(size)
    // Twice: nothing remains of the previous transform.
    for (const seed of [1, 2]) {
      const [re, im] = [Float64Array.from(noise(size, seed)), Float64Array.from(noise(size, seed + 9))]
      const [wantedRe, wantedIm] = [new Float64Array(size), new Float64Array(size)]
      for (let bin = 0; bin < size; bin++)
        for (let i = 0; i < size; i++) {
          const angle = (-2 * Math.PI * bin * i) / size
          wantedRe[bin]! += re[i]! * Math.cos(angle) - im[i]! * Math.sin(angle)
          wantedIm[bin]! += re[i]! * Math.sin(angle) + im[i]! * Math.cos(angle)
        }
      fft.transform(re, im)
      re.forEach((value, bin) => expect(value).toBeCloseTo(wantedRe[bin]!, 10))
      im.forEach((value, bin) => expect(value).toBeCloseTo(wantedIm[bin]!, 10))
    }
  }
  for (const size of [0, 2, 3, 5, 6, 12]) expect(() => new ComplexFft(size)).toThrow(RangeError)
})
