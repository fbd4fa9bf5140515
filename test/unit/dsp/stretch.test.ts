import { describe, expect, test } from 'vitest'
import { OnsetFinder } from '../../../src/core/media/dsp/stretch/onset-finder.js'
import { stretched as stretchedStream } from '../../../src/core/media/dsp/stretch/stretched.js'
import { TempoAndPitch } from '../../../src/core/media/dsp/stretch/tempo-and-pitch.js'
import { TimeMap } from '../../../src/core/media/dsp/stretch/time-map.js'
import { TimeStretch, type TimeStretchOptions } from '../../../src/core/media/dsp/stretch/time-stretch.js'
import { noise } from '../../separation/tracks.js'

// Low, so that frames are short: what needs long tones and many strokes is in test/media/time-stretch.test.ts.
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

/** How many dB the sinusoid of that frequency is above the rest. */
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

  test.each([0.8, 1.5])('has its strokes where they belong, as loud as they were, at a ratio of %f', (ratio) => {
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

  test('comes as soon as its input is there, at another ratio from then on, and says where it is', () => {
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

  test('is played at another pitch and tempo, each as asked', () => {
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

describe('which input is heard at a position of the output', () => {
  const heard = (map: TimeMap, from: number, to: number, step = 1) =>
    Array.from({ length: (to - from) / step + 1 }, (_, i) => map.inputAt(from + i * step))

  test('is on a straight line without onsets, that goes on at another ratio', () => {
    const map = new TimeMap(100, 2)
    expect(heard(map, 0, 300, 100)).toEqual([0, 50, 100, 150])
    map.setRatio(0.5, 300)
    expect(heard(map, 300, 500, 100)).toEqual([150, 350, 550])
    map.setRatio(1, 500)
    expect(map.inputAt(510)).toBe(560)
    expect(map.isAtOnset(510)).toBe(false)
    const ahead = (ratio: number) => new TimeMap(100, ratio).lookAhead
    expect([ahead(0.5), ahead(1), ahead(2)].map(Math.round)).toEqual([190, 150, 150])
  })

  test.each([0.5, 2])('is at its own speed around an onset, and led there and back, at a ratio of %f', (ratio) => {
    const map = new TimeMap(100, ratio)
    map.addOnset(1000)
    map.addOnset(3000)
    const at = 1000 * ratio
    const own = (position: number) => map.inputAt(position) - 1000
    const straight = (position: number) => position / ratio
    // A window, or as much of the output as a window of the input, before and after.
    const way = 100 * Math.min(1, ratio)
    expect(map.inputAt(at - 35 - way)).toBeCloseTo(straight(at - 35 - way), 6)
    const half = at - 35 - way / 2
    expect(map.inputAt(half)).toBeCloseTo(straight(half) + (1000 - 35 - straight(at - 35)) / 2, 6)
    expect([map.isAtOnset(at - 36), map.isAtOnset(at - 35)]).toEqual([false, true])
    for (const offset of [-35, 0, 30]) expect(own(at + offset)).toBeCloseTo(offset, 6)
    expect([map.isAtOnset(at + 30), map.isAtOnset(at + 31)]).toEqual([true, false])
    const back = at + 30 + way / 2
    expect(map.inputAt(back)).toBeCloseTo(straight(back) + (1000 + 30 - straight(at + 30)) / 2, 6)
    expect(map.inputAt(at + 30 + way)).toBeCloseTo(straight(at + 30 + way), 6)
    expect(map.inputAt(3000 * ratio)).toBeCloseTo(3000, 6)
  })

  test('has less of a way between onsets that are near, and none back from before another ratio', () => {
    const map = new TimeMap(100, 2)
    map.addOnset(1000)
    map.addOnset(1040)
    expect(map.inputAt(2030)).toBeCloseTo(1030, 6)
    // From 2030 to 2045, from 15 ahead of the line to 17.5 before it.
    const middle = 2037.5
    expect(map.inputAt(middle)).toBeCloseTo(middle / 2 + (15 - 17.5) / 2, 6)
    expect(map.inputAt(2080)).toBeCloseTo(1040, 6)
    map.inputAt(2111)
    map.setRatio(1, 2111)
    const [first, second] = [map.inputAt(2111), map.inputAt(2121)]
    expect(second - first).toBeCloseTo(10, 6)
  })
})

describe('an onset', () => {
  /** Energies of blocks of 3 samples, which the slope has in the middle one. */
  function found(energies: readonly number[], channelCount = 1): number[] {
    const finder = new OnsetFinder(1000, channelCount)
    const samples: number[] = []
    let level = 0
    energies.forEach((value, index) => {
      const before = level
      level += (index % 2 === 0 ? 1 : -1) * Math.sqrt(value / channelCount)
      samples.push(before, level, level)
    })
    const plane = Float32Array.from(samples)
    const positions: number[] = []
    for (let from = 0; from < plane.length; from += 7) {
      const planes = Array.from({ length: channelCount }, () => plane.subarray(from, from + 7))
      positions.push(...finder.push(planes, planes[0]!.length))
    }
    return positions
  }
  /** Long enough after its own first block. */
  const quiet = Array.from({ length: 24 }, () => 1)

  test('is where the energy rises, to the sample', () => {
    expect(found([...quiet.map(() => 0), 1, 0])).toEqual([73])
    expect(found([...quiet.map(() => 0), 1, 0], 2)).toEqual([73])
    expect(found(quiet.map(() => 0))).toEqual([])
    // Not the first sample that differs, where a twentieth of the energy has come.
    expect(new OnsetFinder(1000, 1).push([Float32Array.of(0, 0.1, 1.1, 1.1, 1.1, 1.1)], 6)).toEqual([2])
  })

  test('is six times the mean of ten blocks before, and two and a half times the strongest', () => {
    expect(found([...quiet, 6.1])).toEqual([1, 73])
    expect(found([...quiet, 5.9])).toEqual([1])
    // What was before these ten blocks does not count.
    expect(found([9, ...quiet, 6.1])).toEqual([1, 76])
    expect(found([...quiet.map(() => 0.1), 0.5, 0.5 * 2.4])).toEqual([1])
    expect(found([...quiet.map(() => 0.1), 0.5, 0.5 * 2.6])).toEqual([1, 76])
  })

  test('counts once in 60 ms, and is louder than nothing', () => {
    const silence = (blocks: number) => Array.from({ length: blocks }, () => 0)
    expect(found([...silence(12), 1, ...silence(18), 1])).toEqual([37])
    expect(found([...silence(12), 1, ...silence(19), 1])).toEqual([37, 97])
    expect(found([...silence(12), 2.9e-9])).toEqual([])
    expect(found([...silence(12), 3.1e-9])).toEqual([37])
  })
})
