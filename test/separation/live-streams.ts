// Streams of samples for the tests of live separation.
import { expect } from 'vitest'
import type { LiveStems } from '../../src/core/workflows/separation/live/live-mix.js'
import { joined, maxDifference } from './tracks.js'

/** Splits the planes into blocks of these sizes, in turn. */
export async function* blocks(
  planes: Float32Array[],
  sizes: readonly number[] = [1024],
): AsyncGenerator<Float32Array[]> {
  for (let from = 0, turn = 0; from < planes[0]!.length; turn++) {
    const to = from + sizes[turn % sizes.length]!
    yield planes.map((plane) => plane.slice(from, to))
    from = to
  }
}

export async function collect(stream: AsyncIterable<LiveStems>) {
  const parts: LiveStems[] = []
  for await (const block of stream) {
    expect(block.start).toBe(parts.reduce((sum, { stems }) => sum + stems.vocals[0]!.length, 0))
    parts.push(block)
  }
  const planes = (stem: 'vocals' | 'accompaniments') =>
    (parts[0]?.stems.vocals ?? []).map((_, channel) => joined(parts.map(({ stems }) => stems[stem][channel]!)))
  return { parts, vocals: planes('vocals'), accompaniments: planes('accompaniments') }
}

export function sumError(
  planes: Float32Array[],
  { vocals, accompaniments }: Awaited<ReturnType<typeof collect>>,
): number {
  expect(vocals).toHaveLength(planes.length)
  return Math.max(
    ...planes.map((plane, channel) => {
      const sum = vocals[channel]!.map((value, i) => value + accompaniments[channel]![i]!)
      return maxDifference(sum, plane)
    }),
  )
}

/** Largest step from one sample to the next, which a click exceeds. */
export function steepest(samples: Float32Array): number {
  let steepestStep = 0
  for (let i = 1; i < samples.length; i++)
    steepestStep = Math.max(steepestStep, Math.abs(samples[i]! - samples[i - 1]!))
  return steepestStep
}
