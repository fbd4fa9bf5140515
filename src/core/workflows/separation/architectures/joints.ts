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
export class Joints {
  readonly #first: number
  readonly #span: number
  readonly #step: number
  readonly #rising: Float32Array
  readonly #falling: Float32Array

  constructor({ first, span, step, fade = Infinity }: JointOptions) {
    this.#first = first
    this.#span = span
    this.#step = step
    const length = Math.floor(Math.min(span - step, span / 2, fade))
    this.#rising = Float32Array.from({ length }, (_, i) => (i + 1) / (length + 1))
    this.#falling = this.#rising.toReversed()
  }

  /** Samples from `index * step` on that the previous segment also estimates; for `SegmentGeometry.given`. */
  get given(): number {
    return this.#first + this.#span - this.#step
  }

  /** Track samples from `start` to `end` that a segment estimates. */
  range({ index, trackSamples = Infinity }: Segment): { start: number; end: number; isLast: boolean } {
    const from = this.#first + index * this.#step
    return {
      start: Math.max(0, from),
      end: Math.min(from + this.#span, trackSamples),
      isLast: trackSamples <= from + this.#span,
    }
  }

  /** @param stems planes of the samples of `range` */
  estimate(segment: Segment, stems: Stems): Estimate {
    const { start, end, isLast } = this.range(segment)
    const sampleCount = end - start
    return {
      start,
      stems,
      sampleCount,
      fadeIn: segment.index === 0 ? none : this.#rising.subarray(0, sampleCount),
      fadeOut: isLast ? none : this.#falling,
      finishedBefore: isLast ? end : this.#first + (segment.index + 1) * this.#step,
    }
  }
}

const none = new Float32Array(0)
