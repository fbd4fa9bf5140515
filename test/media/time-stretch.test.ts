import { describe, expect, it } from 'vitest'
import { TimeStretch, type TimeStretchOptions } from '../../src/core/media/dsp/stretch/time-stretch.js'
import { noise } from '../separation/tracks.js'

const sampleRate = 44_100

/** The whole output, up to the ratio times the input's length. */
function stretched(
  planes: readonly Float32Array[],
  options: Omit<TimeStretchOptions, 'sampleRate'>,
  blockSizes = [4096],
): Float32Array[] {
  const stretch = new TimeStretch({ sampleRate, ...options })
  const sampleCount = planes[0]!.length
  const length = Math.round(sampleCount * (options.ratio ?? 1))
  const output = planes.map(() => new Float32Array(length))
  let at = 0
  const take = () => {
    for (let pulled = stretch.pull(); pulled && at < length; pulled = stretch.pull()) {
      pulled.forEach((plane, index) => output[index]!.set(plane.subarray(0, length - at), at))
      at += stretch.hop
    }
  }
  for (let from = 0, block = 0; from < sampleCount; block++) {
    const size = blockSizes[block % blockSizes.length]!
    stretch.push(planes.map((plane) => plane.subarray(from, from + size)))
    from += size
    take()
  }
  stretch.end()
  take()
  expect(at).toBeGreaterThanOrEqual(length)
  return output
}

const sine = (hertz: number, seconds: number) =>
  Float32Array.from({ length: seconds * sampleRate }, (_, i) => 0.5 * Math.sin((2 * Math.PI * hertz * i) / sampleRate))

/** Strokes every `interval` samples, starting at `first`: bursts of noise that decay within some milliseconds. */
function strokes(sampleCount: number, first: number, interval: number): Float32Array {
  const burst = noise(2000, 3)
  const samples = new Float32Array(sampleCount)
  for (let at = first; at + burst.length < sampleCount; at += interval)
    burst.forEach((value, i) => (samples[at + i]! += value * Math.exp(-i / 200)))
  return samples
}

function energy(samples: Float32Array): number {
  return samples.reduce((sum, value) => sum + value * value, 0)
}

function largestDifference(one: Float32Array, other: Float32Array): number {
  return one.reduce((most, value, i) => Math.max(most, Math.abs(value - other[i]!)), 0)
}

/** The sinusoid nearest to the frequency: its deviation in cents, and its level above everything else in dB. */
function purity(samples: Float32Array, hertz: number): { cents: number; dB: number } {
  const middle = samples.subarray(sampleRate, samples.length - sampleRate)
  const window = middle.length >> 1
  const phaseAt = (from: number) => {
    let [re, im] = [0, 0]
    for (let i = from; i < from + window; i++) {
      const weight = 0.5 - 0.5 * Math.cos((2 * Math.PI * (i - from)) / window)
      const angle = (2 * Math.PI * hertz * i) / sampleRate
      re += weight * middle[i]! * Math.cos(angle)
      im -= weight * middle[i]! * Math.sin(angle)
    }
    return Math.atan2(im, re)
  }
  const turn = phaseAt(middle.length - window) - phaseAt(0)
  const off =
    (((turn - 2 * Math.PI * Math.round(turn / (2 * Math.PI))) / (2 * Math.PI)) * sampleRate) / (middle.length - window)
  let [cosine, sin] = [0, 0]
  const angle = (i: number) => (2 * Math.PI * (hertz + off) * i) / sampleRate
  middle.forEach((value, i) => {
    cosine += (2 / middle.length) * value * Math.cos(angle(i))
    sin += (2 / middle.length) * value * Math.sin(angle(i))
  })
  const rest = middle.map((value, i) => value - cosine * Math.cos(angle(i)) - sin * Math.sin(angle(i)))
  return { cents: 1200 * Math.log2(1 + off / hertz), dB: 10 * Math.log10(energy(middle) / energy(rest)) }
}

describe('audio that is made longer or shorter', () => {
  it('is the same at a ratio of 1', () => {
    const input = [noise(30_000, 1), strokes(30_000, 2000, 7000)]
    const output = stretched(input, { channelCount: 2 })
    input.forEach((plane, channel) => expect(largestDifference(plane, output[channel]!)).toBeLessThan(1e-6))
  })

  it.each([0.8, 1.25])(
    'keeps its pitch within a tenth of a cent, 35 dB above any other sound, at a ratio of %f',
    (ratio) => {
      for (const hertz of [41.2, 55, 82.4, 220, 1000, 5000]) {
        const { cents, dB } = purity(stretched([sine(hertz, 6)], { channelCount: 1, ratio })[0]!, hertz)
        expect(Math.abs(cents), `${hertz} Hz`).toBeLessThan(0.1)
        expect(dB, `${hertz} Hz`).toBeGreaterThan(hertz < 200 ? 35 : 70)
      }
    },
  )

  it.each([0.5, 0.8, 1.25, 2])(
    'has its onsets in their places, with nothing before them, at a ratio of %f',
    (ratio) => {
      const [first, interval] = [10_000, 9500]
      const input = strokes(10 * sampleRate, first, interval)
      const [output] = stretched([input], { channelCount: 1, ratio })
      const count = Math.floor((input.length - first - 2000) / interval)
      expect(count).toBeGreaterThan(40)
      for (let stroke = 0; stroke < count; stroke++) {
        const at = Math.round((first + stroke * interval) * ratio)
        const during = energy(output!.subarray(at, at + 441))
        const asGiven = energy(input.subarray(first + stroke * interval, first + stroke * interval + 441))
        // Onsets are located to within 3 ms.
        const before = energy(output!.subarray(at - 882, at - 132))
        expect(10 * Math.log10(during / asGiven), `stroke ${stroke}`).toBeGreaterThan(-1)
        expect(10 * Math.log10(during / before), `stroke ${stroke}`).toBeGreaterThan(40)
      }
    },
  )

  it('keeps the difference of its channels', () => {
    const left = strokes(60_000, 3000, 9000).map((value, i) => value + 0.3 * Math.sin(i / 17))
    const [one, half, none] = stretched([left, left.map((value) => -value / 2), new Float32Array(left.length)], {
      channelCount: 3,
      ratio: 1.3,
    })
    expect(
      largestDifference(
        one!,
        half!.map((value) => -2 * value),
      ),
    ).toBeLessThan(1e-6)
    expect(energy(none!)).toBe(0)
  })

  it('is the sum of its stretched parts', () => {
    const parts = [noise(60_000, 1).map((v) => v / 4), sine(300, 2), strokes(60_000, 500, 8000), sine(77, 2)].map(
      (plane) => plane.slice(0, 60_000),
    )
    const whole = [0, 1].map((channel) => parts[channel]!.map((value, i) => value + parts[channel + 2]![i]!))
    const output = stretched(parts, { channelCount: 2, partCount: 2, ratio: 0.8 })
    const expected = stretched(whole, { channelCount: 2, ratio: 0.8 })
    for (const channel of [0, 1]) {
      const sum = output[channel]!.map((value, i) => value + output[channel + 2]![i]!)
      expect(largestDifference(sum, expected[channel]!)).toBeLessThan(1e-6)
    }
  })

  it('does not depend on the sizes of blocks', () => {
    const input = [strokes(50_000, 1000, 7000).map((value, i) => value + 0.3 * Math.sin(i / 20))]
    const [expected] = stretched(input, { channelCount: 1, ratio: 1.4 })
    expect(stretched(input, { channelCount: 1, ratio: 1.4 }, [1, 700, 20_000, 3])[0]).toEqual(expected)
  })

  it('changes its speed while it plays, and says where it is', () => {
    const stretch = new TimeStretch({ sampleRate, channelCount: 1, ratio: 0.5 })
    const tone = sine(440, 10)
    stretch.push([tone])
    const played: number[] = []
    for (let pulls = 0; pulls < 600; pulls++) {
      if (pulls === 300) stretch.setRatio(2)
      played.push(...stretch.pull()![0]!)
    }
    // One half at twice the speed, the other at half the speed.
    const expected = (played.length / 2) * 2 + played.length / 2 / 2
    expect(Math.abs(stretch.position - expected)).toBeLessThan(0.1 * sampleRate)
    const { cents } = purity(Float32Array.from(played), 440)
    expect(Math.abs(cents)).toBeLessThan(1)
  })

  it('keeps no more input than its frames need', () => {
    const stretch = new TimeStretch({ sampleRate, channelCount: 2, ratio: 1.25 })
    const block = [sine(200, 1), sine(300, 1)]
    const run = (seconds: number) => {
      for (let second = 0; second < seconds; second++) {
        stretch.push(block)
        while (stretch.pull());
      }
    }
    run(5)
    const before = process.memoryUsage().arrayBuffers
    run(30)
    // 30 s of input are 10.6 MB.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2e6)
  })

  it('refuses an invalid ratio by name', () => {
    expect(() => new TimeStretch({ sampleRate, channelCount: 1, ratio: 5 })).toThrow(/0\.25 to 4, not 5/)
    expect(() => new TimeStretch({ sampleRate, channelCount: 1 }).setRatio(Number.NaN)).toThrow(/not NaN/)
  })
})
