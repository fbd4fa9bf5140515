import { describe, expect, test } from 'vitest'
import { TimeStretch } from '../../../src/core/media/dsp/stretch/time-stretch.js'
import { noise } from '../../separation/tracks.js'
import { plainStretch } from './plain-stretch.js'

/** A rate so low that frames have 32 samples. */
const sampleRate = 700
const size = 32
const hop = size / 4

/** Noise with strokes that are loud enough to be onsets. */
function struck(sampleCount: number, seed: number): Float32Array {
  const loud = noise(sampleCount, seed + 50)
  return noise(sampleCount, seed).map(
    (value, i) => 0.02 * value + ((i + 25 * seed) % 90 > 60 ? loud[i]! * Math.exp(-((i + 25 * seed) % 30) / 6) : 0),
  )
}

interface Given {
  planes: Float32Array[]
  channelCount: number
  ratios: number[]
  blocks?: number[]
}

/** The output pulled after each block and after the end, and the number of samples pushed before each hop. */
function stretched({ planes, channelCount, ratios, blocks = [37] }: Given) {
  const partCount = planes.length / channelCount
  const stretch = new TimeStretch({ sampleRate, channelCount, partCount, ratio: ratios[0] })
  const output = planes.map((): number[] => [])
  const pushed: number[] = []
  let [at, isEnd] = [0, false]
  const pull = () => {
    for (;;) {
      // The first pull also makes the frames that lie before the audio.
      const ratio = ratios[pushed.length + 4 - 1]
      if (pushed.length > 0 && ratio !== undefined) stretch.setRatio(ratio)
      const pulled = stretch.pull()
      if (!pulled) return
      pushed.push(isEnd ? Infinity : at)
      pulled.forEach((plane, index) => output[index]!.push(...plane))
    }
  }
  for (let turn = 0; at < planes[0]!.length; turn++) {
    const count = blocks[turn % blocks.length]!
    stretch.push(planes.map((plane) => plane.subarray(at, at + count)))
    at = Math.min(at + count, planes[0]!.length)
    pull()
  }
  isEnd = true
  stretch.end()
  pull()
  return { output, pushed }
}

function expectPlain(given: Given): void {
  const { output, pushed } = stretched(given)
  const plain = plainStretch(given.planes, given.ratios, size, { sampleRate, channelCount: given.channelCount })
  // Silence added for the last frames may suffice for more.
  const more = output[0]!.length - plain.needed.length * hop
  expect(more).toBeGreaterThanOrEqual(0)
  expect(more).toBeLessThanOrEqual(2 * size * Math.max(...given.ratios))
  output.forEach((plane, index) => {
    const wanted = plain.output[index]!
    const end = plain.needed.length * hop
    const most = plane.slice(0, end).reduce((error, value, i) => Math.max(error, Math.abs(value - wanted[i]!)), 0)
    expect(most, `plane ${index}`).toBeLessThan(1e-4)
  })
  plain.needed.forEach((needed, index) => {
    const blocks = given.blocks ?? [37]
    expect(pushed[index]!, `hop ${index}`).toBeGreaterThanOrEqual(Math.min(needed, given.planes[0]!.length))
    // Each hop came as early as possible.
    if (Number.isFinite(pushed[index]!)) expect(pushed[index]! - Math.max(...blocks)).toBeLessThan(needed)
    else expect(needed).toBeGreaterThan(given.planes[0]!.length)
  })
}

describe('a stretch by its definition', () => {
  test.each([0.25, 0.5, 0.8, 1, 1.3, 2, 4])('equals a stretch block by block, at a ratio of %f', (ratio) => {
    expectPlain({ planes: [struck(300, 1)], channelCount: 1, ratios: [ratio] })
  })

  test.each([
    [2, 1],
    [3, 1],
    [1, 2],
    [2, 2],
    [3, 3],
  ])('has one set of turns for %i channels of %i parts', (channelCount, partCount) => {
    const planes = Array.from({ length: channelCount * partCount }, (_, index) => struck(200, index + 1))
    expectPlain({ planes, channelCount, ratios: [1.3] })
  })

  test.each([[[1]], [[400]], [[3, 150, 2]], [[64]]])('does not depend on blocks of %j', (blocks) => {
    expectPlain({ planes: [struck(400, 2)], channelCount: 1, ratios: [0.7], blocks })
  })

  test('continues for longer than it keeps its input', () => {
    expectPlain({ planes: [struck(1500, 3)], channelCount: 1, ratios: [0.6], blocks: [50] })
    expectPlain({ planes: [struck(900, 3)], channelCount: 1, ratios: [1.9], blocks: [700, 10] })
  })

  test('applies another ratio from its next frame on', () => {
    const ratios = [1, ...Array.from({ length: 14 }, () => 1), 2, 2, 2, 0.5, 0.5, 0.5, 0.5, 1.1]
    expectPlain({ planes: [struck(400, 4)], channelCount: 1, ratios, blocks: [400] })
  })
})

test('its frames last 46 ms, rounded to a power of two of samples', () => {
  const hops = [8000, 44_100, 48_000].map((rate) => new TimeStretch({ sampleRate: rate, channelCount: 1 }).hop)
  expect(hops).toEqual([128, 512, 512])
})
