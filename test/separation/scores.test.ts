import { describe, expect, it } from 'vitest'
import { median, stemComparison } from '../../src/core/workflows/separation/evaluation/scores.js'
import { trackStatistics } from '../../src/core/workflows/separation/pipeline/track-statistics.js'
import { noise, streamOf } from './tracks.js'

const rate = 1000

function scores(reference: Float32Array[], estimate: Float32Array[], blocks = [reference[0]!.length]) {
  const comparison = stemComparison(rate)
  for (let from = 0, turn = 0; from < reference[0]!.length; from += blocks[turn % blocks.length]!, turn++) {
    const cut = (plane: Float32Array) => plane.subarray(from, from + blocks[turn % blocks.length]!)
    comparison.add(reference.map(cut), estimate.map(cut))
  }
  return comparison.scores()
}

/** The reference plus an error of a tenth of its level with the given sign: exactly 20 dB. */
const tenthOff = (plane: Float32Array, sign = 1) => plane.map((value) => value * (1 + sign / 10))

describe('stem scores', () => {
  it('follow their definitions', () => {
    const reference = [noise(5 * rate, 1), noise(5 * rate, 2)]
    const error = [noise(5 * rate, 3), noise(5 * rate, 4)]
    const estimate = reference.map((plane, channel) => plane.map((value, i) => 0.5 * value + 0.2 * error[channel]![i]!))
    const flat = (planes: Float32Array[]) => planes.flatMap((plane) => [...plane])
    const [s, e] = [flat(reference), flat(estimate)]
    const dot = (a: number[], b: number[]) => a.reduce((sum, value, i) => sum + value * b[i]!, 0)
    const difference = s.map((value, i) => value - e[i]!)
    const scale = dot(s, e) / dot(s, s)
    const target = s.map((value) => scale * value)
    const rest = target.map((value, i) => value - e[i]!)
    const found = scores(reference, estimate)
    expect(found.uSdr).toBeCloseTo(10 * Math.log10((dot(s, s) + 1e-7) / (dot(difference, difference) + 1e-7)), 6)
    expect(found.siSdr).toBeCloseTo(10 * Math.log10(dot(target, target) / dot(rest, rest)), 6)
    const chunks = [0, 1, 2, 3, 4].map((second) => {
      const cut = (plane: Float32Array) => plane.subarray(second * rate, (second + 1) * rate)
      return scores(reference.map(cut), estimate.map(cut)).uSdr
    })
    expect(found.cSdr).toBeCloseTo(chunks.sort((a, b) => a - b)[2]!, 9)
  })

  it('do not depend on how the audio is cut into blocks', () => {
    const reference = [noise(4321, 1)]
    const estimate = [noise(4321, 2)]
    const whole = scores(reference, estimate)
    for (const blocks of [[1], [999, 1, 1000, 2500], [64]]) {
      const found = scores(reference, estimate, blocks)
      for (const name of ['uSdr', 'cSdr', 'siSdr'] as const) expect(found[name]).toBeCloseTo(whole[name], 9)
    }
  })

  it('give 20 dB for an error of a tenth, the same for level errors of both signs, and a blind SI-SDR', () => {
    const reference = [noise(3 * rate)]
    for (const sign of [1, -1]) {
      const found = scores(
        reference,
        reference.map((plane) => tenthOff(plane, sign)),
      )
      expect(found.uSdr).toBeCloseTo(20, 3)
      expect(found.cSdr).toBeCloseTo(20, 3)
      expect(found.siSdr).toBeGreaterThan(100)
    }
  })

  it('leave out silent chunks and the rest after the last full second', () => {
    const reference = noise(3 * rate + 500)
    reference.fill(0, rate, 2 * rate)
    const estimate = tenthOff(reference)
    estimate.fill(0.4, rate, 2 * rate)
    estimate.fill(0, 3 * rate)
    expect(scores([reference], [estimate]).cSdr).toBeCloseTo(20, 3)
    estimate.fill(0, 2 * rate, 3 * rate)
    expect(scores([reference], [estimate]).cSdr).toBeCloseTo(20, 3)
  })

  it('score a track of less than a second as a whole, and give silence no score', () => {
    const short = [noise(300)]
    expect(
      scores(
        short,
        short.map((plane) => tenthOff(plane)),
      ).cSdr,
    ).toBeCloseTo(20, 3)
    const silence = [new Float32Array(2 * rate)]
    expect(scores(silence, silence)).toEqual({ uSdr: 0, cSdr: NaN, siSdr: NaN })
  })

  it('take the mean of the two middle values of an even number', () => {
    expect(median([4, 1, 3, 2])).toBe(2.5)
    expect(median([3, 1, 2])).toBe(2)
    expect(median([])).toBeNaN()
  })
})

describe('track statistics', () => {
  it('are the mean and the unbiased deviation of the mono mix', async () => {
    const channels = [noise(12_345, 1).map((value) => value + 0.1), noise(12_345, 2)]
    const mono = Array.from(channels[0]!, (value, i) => (value + channels[1]![i]!) / 2)
    const mean = mono.reduce((sum, value) => sum + value, 0) / mono.length
    const variance = mono.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (mono.length - 1)
    const found = await trackStatistics(streamOf(channels))
    expect(found.mean).toBeCloseTo(mean, 10)
    expect(found.standardDeviation).toBeCloseTo(Math.sqrt(variance), 10)
  })

  it('of one sample or none have no deviation', async () => {
    expect(await trackStatistics(streamOf([Float32Array.of(0.5)]))).toEqual({ mean: 0.5, standardDeviation: 0 })
    expect(await trackStatistics(streamOf([new Float32Array(0)]))).toEqual({ mean: 0, standardDeviation: 0 })
  })
})
