import { describe, expect, it } from 'vitest'
import type { Speaker } from '../../src/core/media/dsp/audio-stream.js'
import type { LoudnessCourse } from '../../src/core/media/loudness/loudness-course.js'
import { type Loudness, LoudnessMeter } from '../../src/core/media/loudness/loudness-meter.js'

// The minimum requirements test signals of EBU Tech 3341 (version 4) and Tech 3342 (version 4), generated from their
// descriptions. Cases 7 and 8 of the first, 5 and 6 of the second are recordings of programmes, which may not be
// redistributed.

const stereo: Speaker[] = ['left', 'right']
const surround: Speaker[] = ['left', 'right', 'centre', 'lfe', 'surroundLeft', 'surroundRight']

interface Segment {
  seconds: number
  /** Peak level of the tone in each channel, dBFS. */
  levels: number[]
}

function segment(seconds: number, level: number): Segment {
  return { seconds, levels: [level, level] }
}

/** Measures a tone (default: 1 kHz) that continues through the segments. */
function measure(segments: readonly Segment[], speakers = stereo, { rate = 48_000, hertz = 1000 } = {}): Loudness {
  const meter = new LoudnessMeter(rate, speakers)
  let position = 0
  for (const { seconds, levels } of segments) {
    const end = position + Math.round(seconds * rate)
    // Blocks of an odd size, so that no step begins at the start of a block.
    while (position < end) {
      const length = Math.min(7919, end - position)
      // One plane for all channels of a level: the standard's tests are long.
      const tones = new Map<number, Float32Array>()
      for (const level of levels) {
        const amplitude = 10 ** (level / 20)
        const step = (2 * Math.PI * hertz) / rate
        if (!tones.has(level))
          tones.set(
            level,
            new Float32Array(length).map((_, i) => amplitude * Math.sin(step * (position + i))),
          )
      }
      meter.add(levels.map((level) => tones.get(level) ?? new Float32Array(length)))
      position += length
    }
  }
  return meter.finish()
}

function expectNear(value: number, expected: number, tolerance = 0.1): void {
  expect(Math.abs(value - expected), `${value} should be ${expected}`).toBeLessThanOrEqual(tolerance)
}

/** The highest short-term loudness until the given time. */
function maxUntil(course: LoudnessCourse, seconds: number): number {
  const values = course.shortTerm.slice(0, Math.ceil(seconds / course.intervalSeconds))
  return Math.max(...values.filter((value) => !Number.isNaN(value)))
}

describe('a loudness meter, EBU Tech 3341', () => {
  it.each([-23, -33])('cases 1 and 2: a stereo tone of %d dBFS has as many LUFS', (level) => {
    const { integrated, maxMomentary, maxShortTerm } = measure([segment(20, level)])
    for (const value of [integrated, maxMomentary, maxShortTerm]) expectNear(value, level)
  })

  it('case 3: quieter parts more than 10 LU below do not count', () => {
    expectNear(measure([segment(10, -36), segment(60, -23), segment(10, -36)]).integrated, -23)
  })

  it('case 4: nor do those below -70 LUFS', () => {
    const parts = [segment(10, -72), segment(10, -36), segment(60, -23), segment(10, -36), segment(10, -72)]
    expectNear(measure(parts).integrated, -23)
  })

  it('case 5: parts within 10 LU count', () => {
    expectNear(measure([segment(20, -26), segment(20.1, -20), segment(20, -26)]).integrated, -23)
  })

  it('case 6: the channels of 5.1 have their weights, and the LFE channel has none', () => {
    const [quiet = 0, loud] = [-120, -3].map(
      (lfe) => measure([{ seconds: 20, levels: [-28, -28, -24, lfe, -30, -30] }], surround).integrated,
    )
    expectNear(quiet, -23)
    expect(loud).toBe(quiet)
  })

  it('case 9: a tone that alternates so that every 3 s are equal has a constant short-term loudness', () => {
    const parts = Array.from({ length: 5 }, () => [segment(1.34, -20), segment(1.66, -30)]).flat()
    const { course, maxShortTerm } = measure(parts)
    expectNear(maxShortTerm, -23)
    const full = course.shortTerm.filter((value) => !Number.isNaN(value))
    expect(full.length).toBe(121)
    for (const value of full) expectNear(value, -23)
  })

  it('case 10: 3 s of a tone have their loudness, wherever they begin', () => {
    for (let i = 0; i < 20; i += 3) {
      expectNear(measure([segment(i * 0.15, -200), segment(3, -23), segment(1, -200)]).maxShortTerm, -23)
    }
  })

  it('case 11: 3 s of a tone that rises from segment to segment have their loudness, each after another pause', () => {
    const starts: number[] = []
    let at = 0
    const parts = Array.from({ length: 20 }, (_, i) => {
      starts.push(at)
      at += i * 0.15 + 4
      return [segment(i * 0.15, -200), segment(3, -38 + i), segment(1, -200)]
    }).flat()
    const { course } = measure(parts, stereo, { rate: 16_000 })
    // A tone is the loudest so far once it has ended.
    for (const [i, start] of starts.entries()) expectNear(maxUntil(course, start + i * 0.15 + 3.5), -38 + i)
  })

  it('case 12: a tone that alternates so that every 400 ms are equal has a constant momentary loudness', () => {
    const parts = Array.from({ length: 25 }, () => [segment(0.18, -20), segment(0.22, -30)]).flat()
    const { course, maxMomentary } = measure(parts)
    expectNear(maxMomentary, -23)
    for (const value of course.momentary.filter((each) => !Number.isNaN(each))) expectNear(value, -23)
  })

  it('case 13: 400 ms of a tone have their loudness, wherever they begin', () => {
    for (let i = 0; i < 20; i++) {
      expectNear(measure([segment(i * 0.02, -200), segment(0.4, -23), segment(1, -200)]).maxMomentary, -23)
    }
  })

  it('case 14: rising tones of 400 ms have their loudness', () => {
    const parts = Array.from({ length: 20 }, (_, i) => [
      segment(i * 0.02, -200),
      segment(0.4, -38 + i),
      segment(1, -200),
    ])
    for (let i = 0; i < 20; i++) {
      const { maxMomentary } = measure(parts.slice(0, i + 1).flat(), stereo, { rate: 16_000 })
      expectNear(maxMomentary, -38 + i)
    }
  })

  // A sine at a quarter of the rate with these phases has its crests between the samples (cases 15 to 19: +0.2, -0.4
  // dB).
  it.each([
    [4, 0, 0.5, -6],
    [4, 45, 0.5, -6],
    [6, 60, 0.5, -6],
    [8, 67.5, 0.5, -6],
    [4, 45, 1.41, 3],
  ])('true peak: rate / %d at %d degrees and amplitude %d is %d dBTP', (divisor, degrees, amplitude, expected) => {
    const meter = new LoudnessMeter(48_000, stereo)
    const fade = (i: number) => Math.min(1, i / 4800, (47_999 - i) / 4800)
    const tone = Float32Array.from(
      { length: 48_000 },
      (_, i) => fade(i) * amplitude * Math.sin((2 * Math.PI * i) / divisor + (degrees * Math.PI) / 180),
    )
    meter.add([tone, tone])
    const { truePeak } = meter.finish()
    expect(truePeak).toBeGreaterThan(expected - 0.4)
    expect(truePeak).toBeLessThan(expected + 0.2)
  })

  // A period of rate / 4 at full scale inside a tone of rate / 6, generated at four times the rate.
  it.each([0, 1, 2, 3])('cases 20 to 23: finds a single peak between samples, %d quarters of one away', (offset) => {
    const length = 4 * 48_000
    const [period, middle] = [16, length / 2]
    const wide = Float64Array.from({ length }, (_, i) => {
      const fade = Math.min(1, i / 19_200, (length - 1 - i) / 19_200)
      if (i >= middle && i < middle + period) return Math.sin((2 * Math.PI * (i - middle)) / period)
      const phase = i < middle ? i - middle : i - middle - period
      return 0.5 * fade * Math.sin((2 * Math.PI * phase) / 24)
    })
    // A low-pass at half the new rate: a sinc with a Blackman window.
    const reach = 512
    const filter = Float64Array.from({ length: 2 * reach + 1 }, (_, i) => {
      const t = i - reach
      const sinc = t === 0 ? 0.25 : Math.sin((Math.PI * t) / 4) / (Math.PI * t)
      return sinc * (0.42 + 0.5 * Math.cos((Math.PI * t) / reach) + 0.08 * Math.cos((2 * Math.PI * t) / reach))
    })
    const tone = new Float32Array(24_000).map((_, n) => {
      let sum = 0
      const at = 4 * (n + 12_000) + offset
      for (let i = -reach; i <= reach; i++) sum += filter[i + reach]! * (wide[at - i] ?? 0)
      return sum
    })
    const meter = new LoudnessMeter(48_000, stereo)
    meter.add([tone, tone])
    const { truePeak } = meter.finish()
    expect(truePeak).toBeGreaterThan(-0.4)
    expect(truePeak).toBeLessThan(0.2)
  })

  it.each([44_100, 48_000, 22_050, 11_025, 96_000, 192_000])('gives the same at %d Hz', (rate) => {
    const { integrated, truePeak } = measure([segment(3, -23)], stereo, { rate, hertz: 997 })
    expectNear(integrated, -23)
    expectNear(truePeak, -23)
  })
})

describe('a loudness range, EBU Tech 3342', () => {
  it.each([
    [[-20, -30], 10],
    [[-20, -15], 5],
    [[-40, -20], 20],
    [[-50, -35, -20, -35, -50], 15],
  ])('of tones of 20 s at %j dBFS is %d LU', (levels, expected) => {
    expectNear(
      measure(
        levels.map((level) => segment(20, level)),
        stereo,
        { rate: 16_000 },
      ).range,
      expected,
    )
  })

  it('leaves out silence and what is more than 20 LU below', () => {
    const parts = [-20, -30, -55, -80].map((level) => segment(20, level))
    expectNear(measure(parts, stereo, { rate: 16_000 }).range, 10)
  })
})

describe('a loudness meter', () => {
  it('treats mono as one loudspeaker: it is 3 LU below the same signal in both channels', () => {
    expectNear(measure([{ seconds: 5, levels: [-20] }], ['mono']).integrated, -23)
    expectNear(measure([segment(5, -20)]).integrated, -20)
  })

  it('weights the rear and side pairs of 7.1 (BS.1770-5, table 3)', () => {
    const speakers: Speaker[] = [...surround, 'surroundLeft', 'surroundRight']
    const only = (channel: number) => [
      { seconds: 2, levels: speakers.map((_, each) => (each === channel ? -20 : -200)) },
    ]
    expectNear(measure(only(4), speakers).integrated, -23)
    expectNear(measure(only(6), speakers).integrated, -23 + 10 * Math.log10(1.41))
  })

  it('has no loudness for silence, and none for less than 400 ms, but peaks', () => {
    const silence = measure([segment(5, -400)])
    expect([silence.integrated, silence.range]).toEqual([-Infinity, 0])
    const short = measure([segment(0.39, -6)])
    expect([short.integrated, short.maxMomentary, short.range]).toEqual([-Infinity, -Infinity, 0])
    expectNear(short.truePeak, -6)
    expectNear(measure([segment(0.4, -23)]).integrated, -23)
  })

  it('finds every true peak that interpolating all samples finds', () => {
    // Noise with a slow swell, so that most runs of samples are skipped.
    let seed = 1
    const random = () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647 - 0.5
    const noise = new Float32Array(48_000).map((_, i) => random() * Math.sin((Math.PI * i) / 48_000) ** 4)
    const whole = new LoudnessMeter(48_000, ['mono'])
    whole.add([noise])
    // With blocks of 16 samples, no run is skipped by its own level alone.
    const small = new LoudnessMeter(48_000, ['mono'])
    for (let from = 0; from < noise.length; from += 16) small.add([noise.subarray(from, from + 16)])
    expect(whole.finish().truePeak).toBe(small.finish().truePeak)
    expect(whole.finish().truePeak).toBeGreaterThan(whole.finish().samplePeak)
  })

  it('keeps at most 1200 points of the course, and the loudest of each', () => {
    const { course, maxMomentary } = measure([segment(130, -40), segment(1, -10), segment(130, -40)], stereo, {
      rate: 8000,
    })
    expect(course.momentary.length).toBeLessThanOrEqual(1200)
    expect(course.intervalSeconds).toBeCloseTo(0.4)
    expectNear(Math.max(...course.momentary.filter((value) => !Number.isNaN(value))), maxMomentary)
  })
})
