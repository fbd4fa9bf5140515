import { describe, expect, it } from 'vitest'
import { RealFft } from '../../src/core/media/dsp/fft.js'
import { reflectedSlice } from '../../src/core/media/dsp/reflected-slice.js'
import { periodicHann } from '../../src/core/media/dsp/fft.js'
import { Stft } from '../../src/core/media/dsp/stft.js'
import { maxDifference, noise } from '../separation/tracks.js'

/** The definition, in double precision: `sum x[n] e^(-2 pi i k n / size)`. */
function transform(frame: Float64Array, bin: number): [number, number] {
  let re = 0
  let im = 0
  for (let n = 0; n < frame.length; n++) {
    const angle = (-2 * Math.PI * ((bin * n) % frame.length)) / frame.length
    re += frame[n]! * Math.cos(angle)
    im += frame[n]! * Math.sin(angle)
  }
  return [re, im]
}

function windowed(signal: Float32Array, from: number, size: number): Float64Array {
  return Float64Array.from(
    { length: size },
    (_, n) => signal[from + n]! * (0.5 - 0.5 * Math.cos((2 * Math.PI * n) / size)),
  )
}

describe('real FFT', () => {
  it.each([32, 64, 96, 160, 2048, 4096, 5120, 6144, 7680, 8192])(
    'of %i points agrees with the definition',
    async (size) => {
      const fft = await RealFft.create(size)
      const signal = noise(size)
      fft.time().set(signal)
      fft.forward(1)
      const spectrum = fft.spectrum().slice()
      const scale = Math.sqrt(size)
      for (const bin of [0, 1, 2, 7, size / 4, size / 2 - 1, size / 2]) {
        const [re, im] = transform(Float64Array.from(signal), bin)
        const found =
          bin === 0
            ? [spectrum[0], 0]
            : bin === size / 2
              ? [spectrum[1], 0]
              : [spectrum[2 * bin], spectrum[2 * bin + 1]]
        expect(Math.abs(found[0]! - re) / scale).toBeLessThan(1e-6)
        expect(Math.abs(found[1]! - im) / scale).toBeLessThan(1e-6)
      }
      fft.inverse(1)
      expect(
        maxDifference(
          fft.time().map((value) => value / size),
          signal,
        ),
      ).toBeLessThan(1e-6)
      fft.close()
    },
  )

  it.each([0, 30, 100, 4096.5, 7 * 32, 11 * 64])('refuses %d points', async (size) => {
    await expect(RealFft.create(size)).rejects.toThrow('multiple of 32')
  })

  it('keeps working while other instances are created and make the shared memory move', async () => {
    const fft = await RealFft.create(64)
    fft.time().set(noise(64))
    const others = await Promise.all(Array.from({ length: 24 }, () => RealFft.create(8192, 32)))
    fft.forward(1)
    fft.inverse(1)
    expect(
      maxDifference(
        fft.time().map((value) => value / 64),
        noise(64),
      ),
    ).toBeLessThan(1e-6)
    for (const each of [fft, ...others]) each.close()
  })
})

describe('STFT', () => {
  it.each([
    { size: 2048, hop: 441 },
    { size: 4096, hop: 1024 },
    { size: 5120, hop: 1024 },
    { size: 6144, hop: 1024 },
    { size: 7680, hop: 1024 },
    { size: 8192, hop: 2048 },
  ])(
    'of $size / $hop returns the signal within 1e-6, and each frame is the windowed transform',
    async ({ size, hop }) => {
      const stft = await Stft.create({ size, hop })
      const frameCount = 37
      const signal = noise(stft.samplesOf(frameCount), size)
      expect(stft.framesIn(signal.length)).toBe(frameCount)
      const re = new Float32Array(frameCount * stft.bins)
      const im = new Float32Array(frameCount * stft.bins)
      const layout = { frameStride: stft.bins, binStride: 1 }
      stft.forward(signal, frameCount, re, im, layout)
      for (const [frame, bin] of [
        [0, 0],
        [0, size / 2],
        [17, 3],
        [20, 511],
        [36, size / 2 - 1],
        [36, size / 2],
      ]) {
        const [expectedRe, expectedIm] = transform(windowed(signal, frame! * hop, size), bin!)
        expect(Math.abs(re[frame! * stft.bins + bin!]! - expectedRe)).toBeLessThan(1e-4)
        expect(Math.abs(im[frame! * stft.bins + bin!]! - expectedIm)).toBeLessThan(1e-4)
      }
      const back = new Float32Array(signal.length)
      stft.inverse(re, im, frameCount, layout, back)
      // The first and last samples are covered only by the window's foot.
      expect(maxDifference(back.subarray(hop, -hop), signal.subarray(hop, -hop))).toBeLessThan(1e-6)
      stft.close()
    },
  )

  it('writes and reads spectra with the bins outside and interleaved parts as well', async () => {
    const stft = await Stft.create({ size: 64, hop: 16 })
    const frameCount = 45
    const signal = noise(stft.samplesOf(frameCount))
    const rows = { re: new Float32Array(frameCount * 33), im: new Float32Array(frameCount * 33) }
    stft.forward(signal, frameCount, rows.re, rows.im, { frameStride: 33, binStride: 1 })
    const pairs = new Float32Array(33 * frameCount * 2)
    const layout = { frameStride: 2, binStride: 2 * frameCount }
    stft.forward(signal, frameCount, pairs, pairs.subarray(1), layout)
    for (let frame = 0; frame < frameCount; frame++) {
      for (let bin = 0; bin < 33; bin++) {
        expect(pairs[(bin * frameCount + frame) * 2]).toBe(rows.re[frame * 33 + bin])
        expect(pairs[(bin * frameCount + frame) * 2 + 1]).toBe(rows.im[frame * 33 + bin])
      }
    }
    const back = new Float32Array(signal.length)
    stft.inverse(pairs, pairs.subarray(1), frameCount, layout, back)
    expect(maxDifference(back.subarray(16, -16), signal.subarray(16, -16))).toBeLessThan(1e-6)
    stft.close()
  })

  it('treats bins that are not kept as zero', async () => {
    const all = await Stft.create({ size: 64, hop: 16 })
    const some = await Stft.create({ size: 64, hop: 16, bins: 20 })
    const frameCount = 9
    const signal = noise(all.samplesOf(frameCount))
    const spectrum = [0, 1].map(() => new Float32Array(frameCount * 33))
    all.forward(signal, frameCount, spectrum[0]!, spectrum[1]!, { frameStride: 33, binStride: 1 })
    for (const plane of spectrum)
      for (let frame = 0; frame < frameCount; frame++) plane.fill(0, frame * 33 + 20, (frame + 1) * 33)
    const expected = new Float32Array(signal.length)
    all.inverse(spectrum[0]!, spectrum[1]!, frameCount, { frameStride: 33, binStride: 1 }, expected)
    const kept = [0, 1].map(() => new Float32Array(frameCount * 20))
    some.forward(signal, frameCount, kept[0]!, kept[1]!, { frameStride: 20, binStride: 1 })
    const found = new Float32Array(signal.length)
    some.inverse(kept[0]!, kept[1]!, frameCount, { frameStride: 20, binStride: 1 }, found)
    expect(maxDifference(found, expected)).toBeLessThan(1e-6)
    all.close()
    some.close()
  })

  it('uses the given window', async () => {
    const rectangular = await Stft.create({ size: 64, hop: 32, window: new Float32Array(64).fill(1) })
    const signal = noise(rectangular.samplesOf(3))
    const re = new Float32Array(99)
    const im = new Float32Array(99)
    rectangular.forward(signal, 3, re, im, { frameStride: 33, binStride: 1 })
    expect(re[33]).toBeCloseTo(
      signal.subarray(32, 96).reduce((sum, value) => sum + value, 0),
      4,
    )
    rectangular.close()
  })

  it('has the periodic Hann window, whose quarter-hop sums are constant', () => {
    const window = periodicHann(64)
    expect(window[0]).toBe(0)
    expect(window[32]).toBe(1)
    for (let n = 0; n < 16; n++)
      expect(window[n]! + window[n + 16]! + window[n + 32]! + window[n + 48]!).toBeCloseTo(2, 6)
  })
})

describe('reflected slice', () => {
  const track = Float32Array.from({ length: 10 }, (_, n) => n + 1)

  it('is a view inside the track and a mirror image at both ends, zero beyond it', () => {
    const part = { samples: track, start: 0 }
    const scratch = new Float32Array(40)
    expect(reflectedSlice(part, 2, 5, 10, scratch).buffer).toBe(track.buffer)
    expect([...reflectedSlice(part, -3, 2, 10, scratch)]).toEqual([4, 3, 2, 1, 2])
    expect([...reflectedSlice(part, 8, 13, 10, scratch)]).toEqual([9, 10, 9, 8, 7])
    expect([...reflectedSlice({ samples: Float32Array.of(5, 6), start: 0 }, -3, 5, 2, scratch)]).toEqual([
      0, 5, 6, 5, 6, 5, 0, 0,
    ])
  })

  it('counts from the start of the part', () => {
    expect([...reflectedSlice({ samples: track.subarray(4), start: 4 }, 5, 12, 10, new Float32Array(7))]).toEqual([
      6, 7, 8, 9, 10, 9, 8,
    ])
  })

  it('does not mirror where the track continues', () => {
    expect([
      ...reflectedSlice({ samples: track.subarray(4), start: 4 }, 5, 10, undefined, new Float32Array(0)),
    ]).toEqual([6, 7, 8, 9, 10])
  })
})
