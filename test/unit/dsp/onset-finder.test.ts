import { describe, expect, test } from 'vitest'
import { onsetFinder } from '../../../src/core/media/dsp/stretch/onset-finder.js'

describe('an onset', () => {
  /** Onsets found in blocks of 3 samples with these energies, whose slope is in the middle sample. */
  function found(energies: readonly number[], channelCount = 1): number[] {
    const finder = onsetFinder(1000, channelCount)
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
  /** Enough blocks after the finder's first block. */
  const quiet = Array.from({ length: 24 }, () => 1)

  test('is where the energy rises, to the sample', () => {
    expect(found([...quiet.map(() => 0), 1, 0])).toEqual([73])
    expect(found([...quiet.map(() => 0), 1, 0], 2)).toEqual([73])
    expect(found(quiet.map(() => 0))).toEqual([])
    // The sample at which a twentieth of the energy has come, not the first that differs.
    expect(onsetFinder(1000, 1).push([Float32Array.of(0, 0.1, 1.1, 1.1, 1.1, 1.1)], 6)).toEqual([2])
  })

  test('is six times the mean of ten blocks before, and two and a half times the strongest', () => {
    expect(found([...quiet, 6.1])).toEqual([1, 73])
    expect(found([...quiet, 5.9])).toEqual([1])
    // Blocks before these ten do not count.
    expect(found([...quiet.slice(11), 2, ...quiet.slice(14), 6.1])).toEqual([1, 73])
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

  test('as strong as it has to be counts', () => {
    /** Blocks of three slopes each, preceded by ten others. */
    const loud = (before: number[], ...last: number[]) => {
      const slopes = [...before.flatMap((slope) => [slope, 0, 0]), ...last]
      let level = 0
      const samples = Float32Array.from(slopes, (slope) => (level += slope))
      return onsetFinder(1000, 1).push([samples], samples.length).at(-1)
    }
    const ones = Array.from({ length: 30 }, () => 1)
    expect([loud(ones, 2, 1, 1), loud(ones, 2, 1, 0)]).toEqual([90, 0])
    const one = [...ones.slice(1), 2]
    expect([loud(one, 3, 1, 0), loud(one, 3, 0, 0)]).toEqual([90, 0])
  })

  test('is found on blocks of 3 ms, rounded, of at least a sample', () => {
    const step = (at: number) => Float32Array.from({ length: at + 2 }, (_, i) => (i < at ? 0 : 1))
    // Samples outside whole blocks are not judged.
    expect(onsetFinder(500, 1).push([step(40)], 41)).toEqual([])
    expect(onsetFinder(500, 1).push([step(40)], 42)).toEqual([40])
    expect(onsetFinder(100, 1).push([step(40)], 41)).toEqual([40])
  })

  test('begins where a twentieth of the energy of its block has come, all samples so far together', () => {
    const slopes = [0.03, 0.015, 0.955].map(Math.sqrt)
    let level = 0
    const samples = Float32Array.from([0, 0, 0, ...slopes], (slope) => (level += slope))
    expect(onsetFinder(1000, 1).push([samples], 6)).toEqual([5])
  })
})
