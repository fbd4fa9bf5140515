import type { FloatPool } from './float-pool.js'
import type { AudioBlock } from './audio-stream.js'
import { SampleWindow } from './sample-window.js'

/**
 * Segments of a track: segment `k` spans the samples `k * step - before` to `k * step - before + length`, clipped to
 * the track.
 */
export interface SegmentGeometry {
  step: number
  before: number
  length: number
  /**
   * Samples from `index * step` on that the previous segment also covers. No segment is made for these alone. Default:
   * 0.
   */
  given?: number
}

/** A part of the track with the real audio around it. */
export interface Segment {
  index: number
  /** Track sample of the first value in `planes`; 0 or more. */
  start: number
  /** One array per channel, ending at the end of the track at the latest. */
  planes: Float32Array<ArrayBuffer>[]
  /** Length of the track in samples, if it ends within this segment; `undefined` if the track continues after it. */
  trackSamples: number | undefined
}

/**
 * Cuts a stream of blocks into overlapping segments (see `SegmentGeometry`), one for every `index * step` inside the
 * track (after the first one, for every `index * step + given`). Keeps no more than a segment and a block of audio. The
 * planes come from `pool`; the consumer returns them to it.
 */
export async function* segments(
  blocks: AsyncIterable<AudioBlock>,
  geometry: SegmentGeometry,
  channelCount: number,
  pool: FloatPool,
  { firstIndex = 0, firstSample = 0 }: SegmentsStart = {},
): AsyncGenerator<Segment, void, void> {
  const window = new SampleWindow(channelCount, geometry.length + pieceSamples, segmentStart(firstIndex, geometry))
  let index = firstIndex
  let position = firstSample
  for await (const block of blocks) {
    const skipped = Math.max(0, window.end - position)
    position += block.channels[0]!.length
    // In pieces: some decoders return the whole track in one block, and the window must not grow with it.
    for (let from = skipped; from < block.channels[0]!.length; from += pieceSamples) {
      window.append(block.channels.map((channel) => channel.subarray(from, from + pieceSamples)))
      // One sample beyond the segment is needed to know that the track does not end with it.
      while (window.end > segmentEnd(index, geometry)) {
        yield cut(window, index, geometry, undefined, pool)
        index++
        window.dropBefore(segmentStart(index, geometry))
      }
    }
  }
  const given = (segment: number) => (segment > 0 ? (geometry.given ?? 0) : 0)
  for (; index * geometry.step + given(index) < window.end; index++)
    yield cut(window, index, geometry, window.end, pool)
}

export interface SegmentsStart {
  /** The first segment to make. Default: 0. */
  firstIndex?: number
  /** Track sample with which `blocks` begins, at most where that segment starts. Default: 0. */
  firstSample?: number
}

const pieceSamples = 65_536

/** Track sample with which a segment starts. */
export function segmentStart(index: number, { step, before }: SegmentGeometry): number {
  return Math.max(0, index * step - before)
}

function segmentEnd(index: number, { step, before, length }: SegmentGeometry): number {
  return index * step - before + length
}

function cut(
  window: SampleWindow,
  index: number,
  geometry: SegmentGeometry,
  trackSamples: number | undefined,
  pool: FloatPool,
): Segment {
  const start = segmentStart(index, geometry)
  const end = Math.min(segmentEnd(index, geometry), window.end)
  const planes = window.planes.map((plane) => {
    const copy = pool.take(end - start)
    copy.set(plane.subarray(start - window.start, end - window.start))
    return copy
  })
  return { index, start, planes, trackSamples }
}
