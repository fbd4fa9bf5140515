import { describe, expect, it } from 'vitest'
import { segments, type Segment, type SegmentGeometry } from '../../../src/core/media/dsp/segment.js'
import { FloatPool } from '../../../src/core/media/dsp/float-pool.js'
import { blocksOf } from '../../separation/tracks.js'

const geometry: SegmentGeometry = { step: 100, before: 30, length: 160 }

/** Sample n of the left channel is n, of the right one -n. */
function ramp(sampleCount: number): Float32Array[] {
  return [1, -1].map((sign) => Float32Array.from({ length: sampleCount }, (_, n) => sign * n))
}

async function cut(sampleCount: number, sizes?: number[]): Promise<Segment[]> {
  const found: Segment[] = []
  for await (const segment of segments(blocksOf(ramp(sampleCount), sizes), geometry, 2, new FloatPool()))
    found.push(segment)
  return found
}

describe('segments', () => {
  it.each([1, 2, 69, 70, 99, 100, 101, 129, 130, 131, 229, 230, 231, 1000, 1030, 5001])(
    'of %i samples have their real neighbours, cut off at the ends',
    async (sampleCount) => {
      for (const sizes of [[7], [1], [100_000], [130, 100, 100]]) {
        const found = await cut(sampleCount, sizes)
        expect(found.map(({ index }) => index)).toEqual(
          Array.from({ length: Math.ceil(sampleCount / 100) }, (_, index) => index),
        )
        for (const { index, start, planes, trackSamples } of found) {
          const end = Math.min(index * 100 + 130, sampleCount)
          expect(start).toBe(Math.max(0, index * 100 - 30))
          expect([...planes[0]!]).toEqual(Array.from({ length: end - start }, (_, n) => start + n))
          expect([...planes[1]!]).toEqual([...planes[0]!].map((value) => -value))
          expect(trackSamples).toBe(sampleCount <= index * 100 + 130 ? sampleCount : undefined)
        }
      }
    },
  )

  it('are cut in pieces from a block that is longer than the window', async () => {
    const long = { step: 40_000, before: 1000, length: 60_000 }
    const plane = Float32Array.from({ length: 230_000 }, (_, n) => n)
    let count = 0
    for await (const { index, start, planes } of segments(blocksOf([plane], [230_000]), long, 1, new FloatPool())) {
      expect(index).toBe(count++)
      expect(start).toBe(Math.max(0, index * 40_000 - 1000))
      expect(planes).toEqual([plane.subarray(start, index * 40_000 + 59_000)])
    }
    expect(count).toBe(6)
  })

  it.each([
    [3, 0],
    [3, 250],
    [3, 270],
    [1, 70],
  ])('may begin with segment %i, from a stream that begins at sample %i', async (firstIndex, firstSample) => {
    const whole = await cut(1000)
    for (const sizes of [[7], [1000]]) {
      const blocks = blocksOf(
        ramp(1000).map((plane) => plane.subarray(firstSample)),
        sizes,
      )
      const found: Segment[] = []
      const start = firstSample === 0 ? { firstIndex } : { firstIndex, firstSample }
      for await (const segment of segments(blocks, geometry, 2, new FloatPool(), start)) found.push(segment)
      expect(found).toEqual(whole.slice(firstIndex))
    }
  })

  it.each([
    [1, 1],
    [100, 1],
    [120, 1],
    [121, 2],
    [220, 2],
    [221, 3],
  ])('of %i samples are %i where the first 20 of each are given by the one before', async (sampleCount, count) => {
    let found = 0
    const given = { ...geometry, given: 20 }
    for await (const { index } of segments(blocksOf(ramp(sampleCount)), given, 2, new FloatPool()))
      expect(index).toBe(found++)
    expect(found).toBe(count)
  })

  it('of an empty stream are none', async () => {
    expect(await cut(0)).toEqual([])
  })

  it('use the planes again that were given back', async () => {
    const pool = new FloatPool()
    const buffers = new Set<ArrayBuffer>()
    for await (const { planes } of segments(blocksOf(ramp(5000)), geometry, 2, pool)) {
      for (const plane of planes) {
        buffers.add(plane.buffer)
        pool.give(plane)
      }
    }
    expect(buffers.size).toBeLessThanOrEqual(4)
  })

  it('ask for no more audio than the segment needs and a block', async () => {
    let taken = 0
    async function* counted() {
      for await (const block of blocksOf(ramp(5000), [50])) {
        taken += block.channels[0]!.length
        yield block
      }
    }
    for await (const { index } of segments(counted(), geometry, 2, new FloatPool()))
      expect(taken).toBeLessThanOrEqual(index * 100 + 130 + 50)
  })
})
