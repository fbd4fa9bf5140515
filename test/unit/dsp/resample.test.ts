import { describe, expect, test } from 'vitest'
import { besselI0, designLowPass } from '../../../src/core/media/dsp/low-pass.js'
import { resample } from '../../../src/core/media/dsp/resample.js'
import { blocksOf, collect, noise, streamOf } from '../../separation/tracks.js'

/** Abramowitz and Stegun, Handbook of Mathematical Functions, table 9.8: exp(-x) I0(x). */
const published = [
  [0, 1],
  [0.2, 0.826_938_5516],
  [1, 0.465_759_6077],
  [2, 0.308_508_3225],
  [5, 0.183_540_8126],
  [10, 0.127_833_3372],
] as const

/** The weight of an input sample `time` samples away from the output, from the formulas, in double precision. */
function kaiserSinc(from: number, to: number) {
  const nyquist = Math.min(from, to) / 2
  const cutoff = (0.955 * nyquist) / from
  const half = Math.ceil(112 / (2.285 * 2 * Math.PI * ((0.09 * nyquist) / from)) / 8) * 4
  const beta = 0.1102 * (120 - 8.7)
  const bessel = (x: number) => {
    let [sum, term] = [1, 1]
    for (let k = 1; k < 50; k++) sum += term *= (x / (2 * k)) ** 2
    return sum
  }
  const weight = (time: number) => {
    if (Math.abs(time) >= half) return 0
    const sinc = time === 0 ? 2 * cutoff : Math.sin(2 * Math.PI * cutoff * time) / (Math.PI * time)
    return sinc * bessel(beta * Math.sqrt(1 - (time / half) ** 2))
  }
  return { half, weight }
}

function reference(input: Float32Array, from: number, to: number): Float64Array {
  const { half, weight } = kaiserSinc(from, to)
  const weights = new Map<number, Float64Array>()
  const weightsOf = (phase: number) => {
    const found = Float64Array.from({ length: 2 * half }, (_, tap) => weight(tap - half + 1 - phase / to))
    const sum = found.reduce((total, value) => total + value, 0)
    const known = found.map((value) => value / sum)
    weights.set(phase, known)
    return known
  }
  return Float64Array.from({ length: Math.ceil((input.length * to) / from) }, (_, n) => {
    const phase = (n * from) % to
    const first = (n * from - phase) / to - half + 1
    return (weights.get(phase) ?? weightsOf(phase)).reduce((sum, w, tap) => sum + w * (input[first + tap] ?? 0), 0)
  })
}

/** The error relative to the whole signal, in dB. */
function errorOf(found: Float32Array, expected: Float64Array): number {
  let [error, power] = [0, 0]
  expected.forEach((value, i) => {
    error += (found[i]! - value) ** 2
    power += value ** 2
  })
  return 10 * Math.log10(error / power)
}

describe('the low-pass filter', () => {
  test.each(published)('has the Bessel function of %d', (x, scaled) => {
    expect(Math.exp(-x) * besselI0(x)).toBeCloseTo(scaled, 9)
  })

  test.each([
    [3, 2, 2, 2],
    [2, 3, 3, 4],
    [1, 1, 5, 6],
  ])('from %d to %d Hz, in %d phases, is a Kaiser-windowed sinc', (from, to, phases, rowCount) => {
    const { taps, rows } = designLowPass(from, to, phases, rowCount)
    const { half, weight } = kaiserSinc(from, to)
    expect(taps).toBe(2 * half)
    expect(rows).toHaveLength(rowCount * taps)
    for (let phase = 0; phase < rowCount; phase++) {
      const expected = Float64Array.from({ length: taps }, (_, tap) => weight(tap - half + 1 - phase / phases))
      const sum = expected.reduce((total, value) => total + value, 0)
      const row = rows.subarray(phase * taps, (phase + 1) * taps)
      expect(Math.max(...row.map((value, tap) => Math.abs(value - expected[tap]! / sum)))).toBeLessThan(1e-7)
    }
  })
})

describe('a changed sample rate', () => {
  test.each([
    [3, 2, 9000],
    [2, 3, 500],
    [1, 5, 200],
    [5, 1, 9000],
    [48_000, 44_100, 400],
    [44_100, 48_000, 400],
    [1023, 1024, 200],
    [1024, 1025, 200],
    [4100, 1027, 700],
    [4999, 5000, 100],
    [3, 2, 1],
    [2, 3, 2],
  ])('%d to %d Hz equals the sum of the definition to -120 dB', async (from, to, sampleCount) => {
    const input = noise(sampleCount)
    const expected = reference(input, from, to)
    const stream = resample(streamOf([input, input.map((value) => -value)], from), to)
    expect(stream).toMatchObject({ sampleRate: to, sampleCount: expected.length, channelCount: 2 })
    const [first, second] = await collect(stream)
    expect(first).toHaveLength(expected.length)
    expect(errorOf(first!, expected)).toBeLessThan(-120)
    expect(second).toEqual(first!.map((value) => -value))
  })

  test.each([[1], [8192], [8193], [20_000]])('does not depend on blocks of %d samples', async (size) => {
    const planes = [noise(20_000), noise(20_000, 2)]
    const inBlocks = (sizes: number[]) =>
      collect(resample({ ...streamOf(planes, 3), blocks: blocksOf(planes, sizes) }, 2))
    expect(await inBlocks([size])).toEqual(await inBlocks([777, 1, 5000]))
  })

  test('is output as soon as the input determines it', async () => {
    const [ahead, sizes]: [number[], number[]] = [[], []]
    let taken = 0
    async function* counted() {
      for await (const block of blocksOf([noise(3000)], [1, 99])) {
        taken += block.channels[0]!.length
        yield block
      }
    }
    let given = 0
    for await (const { channels } of resample({ ...streamOf([noise(3000)], 3), blocks: counted() }, 2).blocks) {
      sizes.push(channels[0]!.length)
      given += channels[0]!.length
      ahead.push(taken - 1.5 * given)
    }
    expect(Math.min(...sizes)).toBeGreaterThan(0)
    const { taps } = designLowPass(3, 2, 1, 1)
    expect(Math.max(...ahead)).toBeLessThanOrEqual(taps / 2)
    expect(given).toBe(2000)
  })

  test('of unknown length has none', () => {
    expect(resample({ ...streamOf([noise(9)], 3), sampleCount: undefined }, 2).sampleCount).toBeUndefined()
  })

  test('of no audio is no audio', async () => {
    expect(await collect(resample(streamOf([new Float32Array(0)], 3), 2))).toEqual([new Float32Array(0)])
  })

  test('that is the same passes the stream', () => {
    const stream = streamOf([noise(9)], 3)
    expect(resample(stream, 3)).toBe(stream)
  })
})
