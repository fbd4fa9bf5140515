import { describe, expect, it } from 'vitest'
import { OverlapAdd } from '../../src/core/workflows/separation/pipeline/overlap-add.js'
import type { Estimate } from '../../src/core/models/stems.js'
import { joined, maxDifference, noise } from '../separation/tracks.js'

const track = 1000

/** A reference independent of the streaming version: all estimates at once, in double precision. */
function reference(estimates: { start: number; values: Float32Array; weights: Float32Array }[]): Float32Array {
  const sum = new Float64Array(track)
  const weight = new Float64Array(track)
  for (const { start, values, weights } of estimates) {
    values.forEach((value, i) => {
      sum[start + i]! += value * weights[i]!
      weight[start + i]! += weights[i]!
    })
  }
  return Float32Array.from(sum, (value, i) => value / weight[i]!)
}

interface Case {
  name: string
  step: number
  length: number
  fadeIn: (index: number) => number[]
  fadeOut: (index: number, isLast: boolean) => number[]
}

const ramp = (length: number) => Array.from({ length }, (_, i) => (i + 1) / (length + 1))
const cases: Case[] = [
  {
    name: 'short cross-fades',
    step: 100,
    length: 120,
    fadeIn: (index) => (index ? ramp(20) : []),
    fadeOut: (_, isLast) => (isLast ? [] : ramp(20).reverse()),
  },
  {
    name: 'triangles that overlap by three quarters',
    step: 50,
    length: 200,
    fadeIn: () => ramp(100),
    fadeOut: () => ramp(100).reverse(),
  },
  { name: 'flat weights that overlap', step: 60, length: 150, fadeIn: () => [], fadeOut: () => [] },
  { name: 'segments that only touch', step: 100, length: 100, fadeIn: () => [], fadeOut: () => [] },
]

describe('overlap-add', () => {
  it.each(cases)('of $name agrees with the formula', ({ step, length, fadeIn, fadeOut }) => {
    const overlapAdd = new OverlapAdd()
    const all: Parameters<typeof reference>[0] = []
    const found: Float32Array[] = []
    let next = 0
    for (let index = 0, start = 0; start < track; index++, start += step) {
      const sampleCount = Math.min(length, track - start)
      const isLast = start + step >= track
      const rising = Float32Array.from(fadeIn(index)).subarray(0, sampleCount)
      const falling = Float32Array.from(fadeOut(index, isLast)).subarray(
        0,
        Math.max(0, sampleCount - (length - fadeOut(index, isLast).length)),
      )
      const weights = new Float32Array(sampleCount).fill(1)
      weights.set(rising)
      weights.set(falling, sampleCount - falling.length)
      const values = noise(sampleCount, index + 1)
      all.push({ start, values, weights })
      const estimate: Estimate = {
        start,
        sampleCount,
        stems: { vocals: [values, values.map((value) => -value)] },
        fadeIn: rising,
        fadeOut: falling,
        finishedBefore: isLast ? track : start + step,
      }
      const finished = overlapAdd.add(estimate)
      expect(finished.start).toBe(next)
      next += finished.sampleCount
      const [left, right] = finished.stems.vocals ?? []
      expect(
        maxDifference(
          right!,
          left!.map((value) => -value),
        ),
      ).toBe(0)
      found.push(left!.slice())
    }
    expect(maxDifference(joined(found), reference(all))).toBeLessThan(1e-6)
  })

  it('averages if an estimate ends before an earlier one does', () => {
    const overlapAdd = new OverlapAdd()
    const none = new Float32Array(0)
    const add = (start: number, sampleCount: number, value: number, finishedBefore: number) =>
      overlapAdd.add({
        start,
        sampleCount,
        stems: { vocals: [new Float32Array(sampleCount).fill(value)] },
        fadeIn: none,
        fadeOut: none,
        finishedBefore,
      })
    add(0, 10, 1, 0)
    add(2, 3, 3, 0)
    expect([...add(4, 6, 8, 10).stems.vocals![0]!]).toEqual([1, 1, 2, 2, 4, 4.5, 4.5, 4.5, 4.5, 4.5])
  })

  it('gives zero, not NaN, where nothing has a weight', () => {
    const none = new Float32Array(0)
    const finished = new OverlapAdd().add({
      start: 0,
      sampleCount: 4,
      stems: { vocals: [Float32Array.of(1, 1, 1, 1)] },
      fadeIn: Float32Array.of(0, 0, 1, 1),
      fadeOut: none,
      finishedBefore: 4,
    })
    expect([...(finished.stems.vocals?.[0] ?? [])]).toEqual([0, 0, 1, 1])
  })
})
