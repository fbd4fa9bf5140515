import { describe, expect, it } from 'vitest'
import type { AudioStream } from '../../src/core/media/dsp/audio-stream.js'
import { resample } from '../../src/core/media/dsp/resample.js'
import { blocksOf, collect, maxDifference, noise, sine, streamOf } from '../separation/tracks.js'

async function resampled(plane: Float32Array, from: number, to: number): Promise<Float32Array> {
  return (await collect(resample(streamOf([plane], from), to)))[0]!
}

/** Gain of a tone, and the level of the rest relative to it, in decibels, by a least-squares fit away from the ends. */
function measure(plane: Float32Array, hertz: number, sampleRate: number): { gain: number; rest: number } {
  const edge = Math.ceil(sampleRate / 20)
  const inner = plane.subarray(edge, plane.length - edge)
  const angle = (index: number) => (2 * Math.PI * hertz * (index + edge)) / sampleRate
  let [ss, sc, cc, xs, xc] = [0, 0, 0, 0, 0]
  inner.forEach((x, index) => {
    const [s, c] = [Math.sin(angle(index)), Math.cos(angle(index))]
    ss += s * s
    sc += s * c
    cc += c * c
    xs += x * s
    xc += x * c
  })
  const determinant = ss * cc - sc * sc
  const a = (xs * cc - xc * sc) / determinant
  const b = (xc * ss - xs * sc) / determinant
  let [signal, rest] = [0, 0]
  inner.forEach((x, index) => {
    const fit = a * Math.sin(angle(index)) + b * Math.cos(angle(index))
    signal += fit ** 2
    rest += (x - fit) ** 2
  })
  return { gain: 20 * Math.log10(Math.hypot(a, b) / 0.5), rest: 10 * Math.log10(rest / signal) }
}

/** The textbook sum in double precision: a windowed sinc centred on each output, neither polyphase nor streamed. */
function reference(input: Float32Array, from: number, to: number): Float64Array {
  const nyquist = Math.min(from, to) / 2
  const cutoff = (0.955 * nyquist) / from
  const half = Math.ceil((120 - 8) / (2.285 * 2 * Math.PI * ((0.09 * nyquist) / from)) / 8) * 4
  const beta = 0.1102 * (120 - 8.7)
  const bessel = (x: number) => {
    let [sum, term] = [1, 1]
    for (let k = 1; k < 80; k++) sum += term *= (x / (2 * k)) ** 2
    return sum
  }
  return Float64Array.from({ length: Math.ceil((input.length * to) / from) }, (_, n) => {
    const centre = (n * from) / to
    let [sum, weight] = [0, 0]
    for (let i = Math.floor(centre) - half + 1; i <= Math.floor(centre) + half; i++) {
      const t = i - centre
      if (Math.abs(t) >= half) continue
      const sinc = t === 0 ? 2 * cutoff : Math.sin(2 * Math.PI * cutoff * t) / (Math.PI * t)
      const tap = sinc * bessel(beta * Math.sqrt(1 - (t / half) ** 2))
      weight += tap
      if (i >= 0 && i < input.length) sum += tap * input[i]!
    }
    return sum / weight
  })
}

const pairs = [
  [48_000, 44_100],
  [96_000, 44_100],
  [192_000, 44_100],
  [22_050, 44_100],
  [8_000, 44_100],
  [44_100, 48_000],
  [47_999, 44_100],
] as const

describe('resampling', () => {
  it.each([
    [48_000, 44_100],
    [8_000, 44_100],
    [96_000, 44_100],
    [47_999, 44_100],
    [767_999, 44_100],
    [11_025, 8_000],
  ])('%d to %d Hz agrees with the sum in double precision to -120 dB', async (from, to) => {
    const input = noise(1500)
    const expected = reference(input, from, to)
    const actual = await resampled(input, from, to)
    expect(actual).toHaveLength(expected.length)
    const error = Math.sqrt(
      actual.reduce((sum, sample, index) => sum + (sample - expected[index]!) ** 2, 0) / actual.length,
    )
    const level = Math.sqrt(expected.reduce((sum, sample) => sum + sample ** 2, 0) / expected.length)
    expect(20 * Math.log10(error / level)).toBeLessThan(-120)
  })

  it.each(pairs)(
    '%d to %d Hz keeps tones of the passband unchanged, with nothing else above -120 dB',
    async (from, to) => {
      for (const hertz of [100, 1000, 10_000, 20_000].filter((hertz) => hertz < (0.91 * Math.min(from, to)) / 2)) {
        const { gain, rest } = measure(await resampled(sine(from, hertz, from), from, to), hertz, to)
        expect(Math.abs(gain), `gain at ${hertz} Hz`).toBeLessThan(0.001)
        expect(rest, `residue at ${hertz} Hz`).toBeLessThan(-120)
      }
    },
  )

  it.each([
    [48_000, 22_600],
    [48_000, 23_500],
    [96_000, 30_000],
    [192_000, 90_000],
    [47_999, 23_000],
  ])('at %d Hz a tone of %d Hz, which 44.1 kHz cannot hold, leaves no alias above -115 dB', async (from, hertz) => {
    const output = await resampled(sine(from, hertz, from), from, 44_100)
    const inner = output.subarray(2000, output.length - 2000)
    const peak = inner.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)
    expect(20 * Math.log10(peak / 0.5)).toBeLessThan(-115)
  })

  it.each([...pairs, [44_100, 8_000], [12_345, 44_100]] as const)(
    '%d to %d Hz gives ceil(n * to / from) samples, from one sample to thousands',
    async (from, to) => {
      for (const sampleCount of [1, 2, 99, 8191, 8192, 20_001]) {
        const stream = resample(streamOf([noise(sampleCount)], from), to)
        const expected = Math.ceil((sampleCount * to) / from)
        expect(stream.sampleCount).toBe(expected)
        expect((await collect(stream))[0]).toHaveLength(expected)
      }
    },
  )

  it('the sizes of the blocks make no difference, even in the last bit', async () => {
    const planes = [noise(30_000), noise(30_000, 2)]
    const inBlocks = (sizes: number[]): AudioStream => ({
      ...streamOf(planes, 48_000),
      blocks: blocksOf(planes, sizes),
    })
    const whole = await collect(resample(inBlocks([30_000]), 44_100))
    for (const sizes of [[1], [7, 4096, 333], [8193]]) {
      const blocks = await collect(resample(inBlocks(sizes), 44_100))
      expect(blocks.map((plane, channel) => maxDifference(plane, whole[channel]!))).toEqual([0, 0])
    }
  })

  it('a constant stays constant away from the ends', async () => {
    const output = await resampled(new Float32Array(10_000).fill(0.75), 32_000, 44_100)
    expect(Math.max(...output.subarray(1000, 12_000).map((sample) => Math.abs(sample - 0.75)))).toBeLessThan(1e-6)
  })

  it('the same rate passes unchanged', () => {
    const stream = streamOf([noise(10)])
    expect(resample(stream, 44_100)).toBe(stream)
  })

  it('no audio gives no audio', async () => {
    expect((await collect(resample(streamOf([new Float32Array(0)], 48_000), 44_100)))[0]).toHaveLength(0)
  })
})
