import { describe, expect, test } from 'vitest'
import { reflectedSlice } from '../../../src/core/media/dsp/reflected-slice.js'
import { periodicHann } from '../../../src/core/media/dsp/fft.js'
import { type SpectrumLayout, Stft, type StftOptions } from '../../../src/core/media/dsp/stft.js'
import { type Complex, hann, inverseStft, reflectPad, stft as referenceStft } from '../../media/double-reference.js'
import { noise } from '../../separation/tracks.js'

/** Frames of one batch, of several, and of an incomplete one. */
const frameCounts = [1, 2, 16, 17, 45]
const options: StftOptions[] = [
  { size: 64, hop: 16 },
  { size: 64, hop: 24 },
  { size: 32, hop: 32 },
  { size: 64, hop: 16, bins: 32 },
  { size: 64, hop: 16, bins: 20 },
  { size: 32, hop: 3 },
  { size: 64, hop: 16, window: noise(64, 9).map((value) => value + 1) },
]

function layoutsOf(frameCount: number, bins: number): SpectrumLayout[] {
  return [
    { frameStride: bins, binStride: 1 },
    { frameStride: bins + 3, binStride: 1 },
    { frameStride: 1, binStride: frameCount },
    { frameStride: 2, binStride: 2 * frameCount },
  ]
}

/** Infinite where either value is not a number. */
function largestDifference(found: ArrayLike<number>, expected: ArrayLike<number>): number {
  let most = found.length === expected.length ? 0 : Infinity
  for (let i = 0; i < expected.length; i++) {
    const difference = Math.abs(found[i]! - expected[i]!)
    most = Number.isNaN(difference) ? Infinity : Math.max(most, difference)
  }
  return most
}

function referenceOf({ size, hop, window }: StftOptions) {
  return { size, hop, window: window ? Float64Array.from(window) : hann(size) }
}

/** The spectra in a layout, with `around` in all other places. */
function placed(frames: Complex[], bins: number, { frameStride, binStride }: SpectrumLayout, around: number) {
  const length = (frames.length + 3) * (bins + 3) * 2
  const [re, im] = [new Float32Array(length).fill(around), new Float32Array(length).fill(around)]
  frames.forEach((frame, t) => {
    for (let bin = 0; bin < bins; bin++) {
      re[t * frameStride + bin * binStride] = frame.re[bin]!
      im[t * frameStride + bin * binStride] = frame.im[bin]!
    }
  })
  return { re, im }
}

describe('the short-time Fourier transform', () => {
  test.each(options)(
    'of $size points each $hop samples, $bins bins, is that of the definition in double precision',
    async (option) => {
      const { bins = option.size / 2 + 1 } = option
      const stft = await Stft.create(option)
      expect([stft.size, stft.hop, stft.bins]).toEqual([option.size, option.hop, bins])
      for (const frameCount of frameCounts) {
        const signal = noise(stft.samplesOf(frameCount))
        const spectrum = referenceStft(Float64Array.from(signal), referenceOf(option))
        for (const layout of layoutsOf(frameCount, bins)) {
          const expected = placed(spectrum, bins, layout, 5)
          const [re, im] = [expected.re.map(() => 5), expected.im.map(() => 5)]
          stft.forward(signal, frameCount, re, im, layout)
          expect(largestDifference(re, expected.re)).toBeLessThan(1e-5)
          expect(largestDifference(im, expected.im)).toBeLessThan(1e-5)
        }
      }
      stft.close()
    },
  )

  test.each(options)(
    'of $size points each $hop samples, $bins bins, is inverted as the definition says',
    async (option) => {
      const { size, hop, bins = size / 2 + 1 } = option
      const stft = await Stft.create(option)
      // Leftovers of the other direction in the memory do not count.
      const length = 16 * (size / 2 + 1)
      const used = { frameStride: bins, binStride: 1 }
      stft.forward(noise(stft.samplesOf(16)), 16, new Float32Array(length), new Float32Array(length), used)
      for (const silent of [0, 3]) {
        for (const frameCount of frameCounts) {
          // Arbitrary numbers, beyond those that a transform gives: the imaginary parts at both ends do not count.
          const frames = Array.from({ length: frameCount }, (_, t) => {
            const [re, im] = [1, 2].map((seed) => new Float64Array(size / 2 + 1).map(part(noise(bins, 2 * t + seed))))
            return { re: re!, im: im! }
          })
          const none = { re: new Float64Array(size / 2 + 1), im: new Float64Array(size / 2 + 1) }
          const around = Array.from({ length: silent }, () => none)
          const whole = inverseStft([...around, ...frames, ...around], referenceOf(option))
          const expected = whole.subarray(silent * hop, silent * hop + stft.samplesOf(frameCount))
          for (const layout of layoutsOf(frameCount, bins)) {
            const { re, im } = placed(frames, bins, layout, 7)
            const out = new Float32Array(expected.length + 5).fill(8)
            stft.inverse(re, im, frameCount, layout, out, silent || undefined)
            const tolerance = 1e-6 * Math.max(1, ...expected.map(Math.abs))
            expect(largestDifference(out.subarray(0, -5), expected)).toBeLessThan(tolerance)
            expect([...out.subarray(-5)]).toEqual([8, 8, 8, 8, 8])
          }
        }
      }
      stft.close()
    },
  )

  test.each(options)(
    'of $size points each $hop samples, $bins bins, changes a signal frame by frame as both directions do',
    async (option) => {
      const stft = await Stft.create(option)
      const { bins } = stft
      const layout = { frameStride: bins, binStride: 1 }
      const change = (re: Float32Array, im: Float32Array, frame: number) => {
        expect([re.length, im.length]).toEqual([bins, bins])
        re.forEach((value, bin) => (re[bin] = value * (1 + frame) - im[bin]!))
        im.forEach((value, bin) => (im[bin] = value * (2 + bin)))
      }
      for (const frameCount of frameCounts) {
        const signal = noise(stft.samplesOf(frameCount) + 5)
        const expected = signal.slice()
        const [re, im] = [0, 1].map(() => new Float32Array(frameCount * bins))
        stft.forward(signal, frameCount, re!, im!, layout)
        for (let frame = 0; frame < frameCount; frame++) {
          const row = (plane: Float32Array) => plane.subarray(frame * bins, (frame + 1) * bins)
          change(row(re!), row(im!), frame)
        }
        stft.inverse(re!, im!, frameCount, layout, expected)
        stft.filter(signal, frameCount, change)
        expect(largestDifference(signal, expected)).toBe(0)
      }
      stft.close()
    },
  )

  test('counts the frames in samples, and the samples of frames', async () => {
    const stft = await Stft.create({ size: 64, hop: 24 })
    expect([0, 63, 64, 87, 88, 111, 112].map((samples) => stft.framesIn(samples))).toEqual([0, 0, 1, 1, 2, 2, 3])
    expect([0, 1, 2, 3].map((frames) => stft.samplesOf(frames))).toEqual([0, 64, 88, 112])
    stft.close()
  })

  test('has the periodic Hann window', () => {
    expect(largestDifference(periodicHann(64), hann(64))).toBeLessThan(1e-7)
  })

  test('frees its memory', async () => {
    const use = async () => {
      const stft = await Stft.create({ size: 2 ** 14, hop: 2 ** 13 })
      stft.close()
    }
    const { RealFft } = await import('../../../src/core/media/dsp/fft.js')
    const bytes = async () => {
      const fft = await RealFft.create(32)
      const { byteLength } = fft.time().buffer
      fft.close()
      return byteLength
    }
    await use()
    const before = await bytes()
    for (let turn = 0; turn < 12; turn++) await use()
    expect(await bytes()).toBe(before)
  })
})

describe('a slice of a track', () => {
  test('is mirrored at both ends, and silent beyond', () => {
    const track = noise(11)
    const padded = reflectPad(track, 40, 60)
    for (let from = -25; from < 30; from++) {
      for (let length = 0; length < 30; length++) {
        const scratch = new Float32Array(30).fill(9)
        const found = reflectedSlice({ samples: track, start: 0 }, from, from + length, 11, scratch)
        expect([...found]).toEqual([...padded.subarray(40 + from, 40 + from + length)])
      }
    }
  })

  test('of a part counts from the start of the track', () => {
    const track = noise(50)
    const padded = reflectPad(track, 10, 10)
    const part = { samples: track.subarray(30), start: 30 }
    for (const [from, to] of [
      [31, 45],
      [31, 50],
      [40, 55],
      [45, 60],
      [50, 53],
    ] as const) {
      const found = reflectedSlice(part, from, to, 50, new Float32Array(30))
      expect([...found]).toEqual([...padded.subarray(10 + from, 10 + to)])
    }
    const begun = { samples: track.subarray(0, 20), start: 0 }
    expect([...reflectedSlice(begun, -5, 12, undefined, new Float32Array(20))]).toEqual([...padded.subarray(5, 22)])
  })

  test('is a view where nothing has to be padded', () => {
    const track = noise(20)
    for (const [from, to, length] of [
      [0, 20, 20],
      [3, 7, 20],
      [3, 7, undefined],
    ] as const)
      expect(reflectedSlice({ samples: track, start: 0 }, from, to, length, new Float32Array(0)).buffer).toBe(
        track.buffer,
      )
  })
})

/** Values of a list; zero beyond its end. */
const part = (values: Float32Array) => (_: number, index: number) => values[index] ?? 0
