import { describe, expect, test } from 'vitest'
import { stretched as stretchedStream } from '../../../src/core/media/dsp/stretch/stretched.js'
import { TempoAndPitch } from '../../../src/core/media/dsp/stretch/tempo-and-pitch.js'
import { TimeStretch, type TimeStretchOptions } from '../../../src/core/media/dsp/stretch/time-stretch.js'
import { noise } from '../../separation/tracks.js'

// A low rate for short frames: test/media/time-stretch.test.ts tests long tones and many strokes.
const sampleRate = 8000
const size = 512

function stretched(
  planes: readonly Float32Array[],
  options: Omit<TimeStretchOptions, 'sampleRate'>,
  blockSizes = [1000],
): Float32Array[] {
  const stretch = new TimeStretch({ sampleRate, ...options })
  expect(stretch.hop).toBe(size / 4)
  const length = Math.round(planes[0]!.length * (options.ratio ?? 1))
  const output = planes.map(() => new Float32Array(length))
  let at = 0
  const take = () => {
    for (let pulled = stretch.pull(); pulled; pulled = stretch.pull()) {
      pulled.forEach((plane, index) =>
        output[index]!.set(plane.subarray(0, Math.max(0, length - at)), Math.min(at, length)),
      )
      at += stretch.hop
      if (at > 4 * length + 8 * size) throw new Error('it does not end')
    }
  }
  for (let from = 0, block = 0; from < planes[0]!.length; block++) {
    const count = blockSizes[block % blockSizes.length]!
    stretch.push(planes.map((plane) => plane.subarray(from, from + count)))
    from += count
    take()
  }
  stretch.end()
  take()
  expect(at).toBeGreaterThanOrEqual(length)
  return output
}

const tone = (hertz: number, sampleCount: number, level = 0.5) =>
  Float32Array.from({ length: sampleCount }, (_, i) => level * Math.sin((2 * Math.PI * hertz * i) / sampleRate))

function strokes(sampleCount: number, first: number, interval: number): Float32Array {
  const burst = noise(300, 3)
  const samples = new Float32Array(sampleCount)
  for (let at = first; at + burst.length < sampleCount; at += interval)
    burst.forEach((value, i) => (samples[at + i]! += value * Math.exp(-i / 40)))
  return samples
}

const energy = (samples: Float32Array) => samples.reduce((sum, value) => sum + value * value, 0)
const difference = (one: Float32Array, other: Float32Array) =>
  one.reduce((most, value, i) => Math.max(most, Math.abs(value - other[i]!)), 0)

/** Level of the sinusoid of that frequency above the rest, in dB. */
function purity(samples: Float32Array, hertz: number): number {
  const angle = (i: number) => (2 * Math.PI * hertz * i) / sampleRate
  let [cosine, sine] = [0, 0]
  samples.forEach((value, i) => {
    cosine += (2 / samples.length) * value * Math.cos(angle(i))
    sine += (2 / samples.length) * value * Math.sin(angle(i))
  })
  const rest = samples.map((value, i) => value - cosine * Math.cos(angle(i)) - sine * Math.sin(angle(i)))
  return 10 * Math.log10(energy(samples) / energy(rest))
}

describe('audio that is made longer or shorter', () => {
  test('is the same at a ratio of 1', () => {
    const input = [noise(5000, 1), strokes(5000, 400, 1500), noise(5000, 2)]
    stretched(input, { channelCount: 3 }).forEach((plane, channel) =>
      expect(difference(plane, input[channel]!)).toBeLessThan(1e-6),
    )
  })

  test.each([0.5, 0.8, 1.25, 2])('keeps its pitch and level at a ratio of %f', (ratio) => {
    for (const hertz of [200, 1000, 3000]) {
      const [output] = stretched([tone(hertz, 8000)], { channelCount: 1, ratio })
      const middle = output!.subarray(1000, output!.length - 1000)
      expect(purity(middle, hertz), `${hertz} Hz`).toBeGreaterThan(40)
      expect(energy(middle) / middle.length, `${hertz} Hz`).toBeCloseTo(0.125, 2)
    }
  })

  test.each([0.8, 1.5])('has its onsets in their places, as loud as before, at a ratio of %f', (ratio) => {
    const input = strokes(12_000, 1500, 1900)
    const [output] = stretched([input], { channelCount: 1, ratio })
    for (let at = 1500; at < 11_000; at += 1900) {
      const there = Math.round(at * ratio)
      const given = energy(input.subarray(at, at + 80))
      const decibels = 10 * Math.log10(energy(output!.subarray(there, there + 80)) / given)
      expect(Math.abs(decibels), `at ${at}`).toBeLessThan(1)
      expect(energy(output!.subarray(there - 160, there - 24)), `before ${at}`).toBeLessThan(given / 1e4)
    }
  })

  test('keeps what its channels differ by, is the sum of its parts and does not depend on blocks', () => {
    const left = strokes(6000, 600, 1800).map((value, i) => value + 0.3 * Math.sin(i / 9))
    const channels = [left, left.map((value) => -value / 2), new Float32Array(left.length)]
    const [one, half, none] = stretched(channels, { channelCount: 3, ratio: 1.3 })
    expect(
      difference(
        one!,
        half!.map((value) => -2 * value),
      ),
    ).toBeLessThan(1e-5)
    expect(energy(none!)).toBe(0)
    expect(stretched(channels, { channelCount: 3, ratio: 1.3 }, [1, 70, 2000, 3])).toEqual([one, half, none])

    const parts = [noise(6000, 1), tone(300, 6000), left, tone(77, 6000)]
    const whole = [0, 1].map((channel) => parts[channel]!.map((value, i) => value + parts[channel + 2]![i]!))
    const output = stretched(parts, { channelCount: 2, partCount: 2, ratio: 0.8 })
    stretched(whole, { channelCount: 2, ratio: 0.8 }).forEach((plane, channel) =>
      expect(
        difference(
          output[channel]!.map((value, i) => value + output[channel + 2]![i]!),
          plane,
        ),
      ).toBeLessThan(1e-5),
    )
  })

  test('is output as soon as its input exists, follows a new ratio from then on, and reports its position', () => {
    const stretch = new TimeStretch({ sampleRate, channelCount: 1 })
    expect(stretch.pull()).toBeUndefined()
    stretch.push([tone(440, 6000)])
    const lengths: number[] = []
    for (const ratio of [1, 0.5, 2]) {
      stretch.setRatio(ratio)
      const before = stretch.position
      for (let pulls = 0; pulls < 8; pulls++) expect(stretch.pull()).toHaveLength(1)
      lengths.push(Math.round((stretch.position - before) / stretch.hop))
    }
    expect(lengths).toEqual([8, 16, 4])
  })

  test('takes ratios from a quarter to four', () => {
    for (const ratio of [0.25, 4]) {
      const [output] = stretched([tone(500, 4000)], { channelCount: 1, ratio })
      expect(purity(output!.subarray(output!.length / 4, output!.length / 2), 500)).toBeGreaterThan(30)
    }
    for (const ratio of [0.249, 4.001, Number.NaN])
      expect(() => new TimeStretch({ sampleRate, channelCount: 1, ratio })).toThrow(RangeError)
  })

  test('has all of its samples at every tempo and pitch, to the end', async () => {
    for (const [tempo, semitones] of [
      [2, -12],
      [0.5, 12],
      [1.9, -11.5],
      [1, 0],
    ] as const) {
      const blocks = (async function* () {
        yield { channels: [strokes(4001, 300, 700)] }
      })()
      const given = { sampleRate, channelCount: 1, sampleCount: 4001, format: 'wav', blocks }
      const stream = stretchedStream(given, { tempo, semitones })
      let written = 0
      for await (const { channels } of stream.blocks) written += channels[0]!.length
      expect([written, stream.sampleCount]).toEqual([Math.round(4001 / tempo), Math.round(4001 / tempo)])
    }
  })

  test('is the stream itself if nothing is requested, and else in blocks of its own, none of them empty', async () => {
    const plane = tone(300, 2560)
    const given = () => ({
      sampleRate,
      channelCount: 1,
      sampleCount: undefined,
      format: 'wav',
      blocks: (async function* () {
        yield { channels: [plane] }
      })(),
    })
    const stream = given()
    expect(stretchedStream(stream, {})).toBe(stream)
    expect(stretchedStream(stream, { tempo: 1, semitones: 0 })).toBe(stream)
    for (const change of [{ tempo: 2 }, { semitones: 3 }]) expect(stretchedStream(stream, change)).not.toBe(stream)
    const blocks: Float32Array[] = []
    const copies: Float32Array[] = []
    const half = stretchedStream(given(), { tempo: 2 })
    expect(half.sampleCount).toBeUndefined()
    for await (const { channels } of half.blocks) {
      blocks.push(channels[0]!)
      copies.push(channels[0]!.slice())
    }
    expect(blocks.map(({ length }) => length)).toEqual(Array.from({ length: 10 }, () => size / 4))
    expect(blocks).toEqual(copies)
  })

  test('is complete to its last sample, even at another pitch', () => {
    for (const semitones of [0, 12]) {
      const change = new TempoAndPitch({ sampleRate, channelCount: 1, semitones })
      const input = new Float32Array(3000)
      input.set(tone(400, 60), 2940)
      change.push([input])
      change.end()
      const output: number[] = []
      while (output.length < 3000) output.push(...change.pull()![0]!)
      expect(energy(Float32Array.from(output.slice(2900, 3000)))).toBeGreaterThan(1)
    }
  })

  test('reports its position, at each ratio', () => {
    const stretch = new TimeStretch({ sampleRate, channelCount: 1, ratio: 2 })
    expect(stretch.position).toBe(0)
    stretch.push([new Float32Array(9000)])
    for (let pulls = 0; pulls < 16; pulls++) stretch.pull()
    expect(stretch.position).toBe((16 * stretch.hop) / 2)
    stretch.setRatio(0.5)
    for (let pulls = 0; pulls < 4; pulls++) stretch.pull()
    // Frames that began before need half a window more of the input at the other ratio.
    expect(stretch.position).toBe((16 * stretch.hop) / 2 + size / 4 + 4 * stretch.hop * 2 - size)
  })

  test('reports its position by its tempo, at each pitch', () => {
    const change = new TempoAndPitch({ sampleRate, channelCount: 1, semitones: 12, tempo: 2 })
    expect(change.position).toBe(0)
    change.push([new Float32Array(9000)])
    for (let pulls = 0; pulls < 8; pulls++) change.pull()
    expect(change.position).toBeCloseTo(8 * change.hop * 2, 6)
  })

  test('is played at the requested pitch and tempo', () => {
    for (const [tempo, semitones] of [
      [1, 12],
      [1.25, 0],
      [0.8, -5],
    ] as const) {
      const change = new TempoAndPitch({ sampleRate, channelCount: 1, tempo, semitones })
      const output: number[] = []
      for (let from = 0; from < 9000; from += 500) {
        change.push([tone(440, 9000).subarray(from, from + 500)])
        for (let pulled = change.pull(); pulled; pulled = change.pull()) output.push(...pulled[0]!)
      }
      const hertz = 440 * 2 ** (semitones / 12)
      expect(purity(Float32Array.from(output.slice(1500, 5500)), hertz)).toBeGreaterThan(20)
    }
  })
})
