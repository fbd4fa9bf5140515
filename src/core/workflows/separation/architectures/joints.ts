import type { Segment } from '../../../media/dsp/segment.js'
import type { Estimate, Stems } from '../../../models/stems.js'

export interface JointOptions {
  /** Track sample at which the estimate of segment 0 begins: 0 or less. */
  first: number
  /** Samples that each segment estimates. */
  span: number
  /** Samples from one segment's estimate to the next one's. */
  step: number
  /** Longest cross-fade, in samples. Default: the whole overlap, at most half a span. */
  fade?: number
}

/**
 * Joins the estimates of neighbouring segments with linear cross-fades. The ends of the track are not faded, and no
 * weight is zero.
 */
export function joints({ first, span, step, fade = Infinity }: JointOptions) {
  const length = Math.floor(Math.min(span - step, span / 2, fade))
  const rising = Float32Array.from({ length }, (_, i) => (i + 1) / (length + 1))
  const falling = rising.toReversed()
  /** Track samples from `start` to `end` that a segment estimates. */
  const range = ({ index, trackSamples = Infinity }: Segment) => {
    const from = first + index * step
    return {
      start: Math.max(0, from),
      end: Math.min(from + span, trackSamples),
      isLast: trackSamples <= from + span,
    }
  }
  return {
    /** Samples from `index * step` on that the previous segment also estimates; for `SegmentGeometry.given`. */
    given: first + span - step,
    range,
    /** @param stems planes of the samples of `range` */
    estimate(segment: Segment, stems: Stems): Estimate {
      const { start, end, isLast } = range(segment)
      const sampleCount = end - start
      return {
        start,
        stems,
        sampleCount,
        fadeIn: segment.index === 0 ? none : rising.subarray(0, sampleCount),
        fadeOut: isLast ? none : falling,
        finishedBefore: isLast ? end : first + (segment.index + 1) * step,
      }
    },
  }
}

const none = new Float32Array(0)
