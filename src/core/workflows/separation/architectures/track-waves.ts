import type { Segment, SegmentGeometry } from '../../../media/dsp/segment.js'
import { joints } from './joints.js'
import type { TrackStatistics } from './architecture.js'
import type { Estimate, Stems } from '../../../models/stems.js'
import type { StemSources } from './stem-sources.js'

/** Without statistics, nothing is normalized. */
const none: TrackStatistics = { mean: 0, standardDeviation: 1 }

/** Avoids a division by zero for silence. */
const leastDeviation = 1e-8

/**
 * Cuts a track into waveforms of a fixed length, normalized by the statistics of the whole track, and joins the
 * networks' outputs. The last waveform, and that of a shorter track, is extended on both sides: by real audio, and by
 * silence beyond the track.
 *
 * @param overlap fraction by which neighbouring waveforms overlap
 */
export function trackWaves(length: number, overlap: number) {
  const step = Math.max(1, Math.floor((1 - overlap) * length))
  const before = Math.ceil(length / 2)
  const { range, given, estimate } = joints({ first: 0, span: length, step })
  const firstSample = (segment: Segment) => {
    const { start, end } = range(segment)
    return start - Math.floor((length - (end - start)) / 2)
  }
  const geometry: SegmentGeometry = { step, before, length: before + length, given }
  return {
    length,
    geometry,

    /** Writes the normalized waveform of one channel of a segment. */
    normalize(segment: Segment, channel: number, statistics: TrackStatistics | undefined, wave: Float32Array): void {
      const { mean, standardDeviation } = statistics ?? none
      const samples = segment.planes[channel]!
      const from = firstSample(segment)
      const first = Math.max(0, -from)
      const offset = from - segment.start
      const last = Math.min(length, samples.length - offset)
      const gain = 1 / (standardDeviation + leastDeviation)
      wave.fill(0, 0, first).fill(0, last)
      for (let i = first; i < last; i++) wave[i] = (samples[i + offset]! - mean) * gain
    },

    /**
     * @param stems planes of whole waveforms; the normalization is undone in place
     * @param sources the network outputs that each stem is the sum of
     */
    estimate(segment: Segment, stems: Stems, statistics: TrackStatistics | undefined, sources: StemSources): Estimate {
      const { mean, standardDeviation } = statistics ?? none
      const { start, end } = range(segment)
      const offset = start - firstSample(segment)
      const gain = standardDeviation + leastDeviation
      const planes: Stems = {}
      for (const [stem, parts] of sources) {
        planes[stem] = stems[stem]?.map((wave) => {
          const plane = wave.subarray(offset, offset + end - start)
          for (let i = 0; i < plane.length; i++) plane[i] = plane[i]! * gain + parts.length * mean
          return plane
        })
      }
      return estimate(segment, planes)
    },
  }
}
