import { reflectedSlice } from '../../../media/dsp/reflected-slice.js'
import type { Segment, SegmentGeometry } from '../../../media/dsp/segment.js'
import { Stft, type SpectrumLayout, type StftOptions } from '../../../media/dsp/stft.js'
import type { Estimate, Stems } from '../../../models/stems.js'
import { type Joints, joints } from './joints.js'

export interface TrackFramesOptions extends StftOptions {
  /** Frames per segment: the network's input size. */
  frameCount: number
  /** Fraction by which neighbouring segments overlap. */
  overlap: number
  /** Longest cross-fade, in samples. Default: the whole overlap. */
  fade?: number
  /**
   * How the track is padded. `reflect`: the frames are those of the centred STFT, frame `t` around sample `t * hop`.
   * `zeros`: frame `t` ends with sample `(t + 1) * hop - 1`, and every frame that covers a sample counts.
   */
  padding: 'reflect' | 'zeros'
}

/**
 * Cuts the STFT of the whole track into segments of a fixed number of frames, and turns the separated frames back into
 * audio.
 *
 * Frames beyond the track are silent and frames inside it are computed from the real audio around them. Samples that
 * frames of other segments reach into are dropped. So a mask over frequencies gives exactly what it would give on the
 * STFT of the whole track, however the track is segmented.
 */
export class TrackFrames {
  readonly bins: number
  readonly frameCount: number
  readonly geometry: SegmentGeometry
  readonly #stft: Stft
  readonly #joints: Joints
  readonly #padding: TrackFramesOptions['padding']
  /** Samples from the start of frame 0 to the start of the track. */
  readonly #lead: number
  /** Index of the first frame of segment 0: 0 or less. */
  readonly #firstFrame: number
  readonly #stepFrames: number
  readonly #padded: Float32Array
  readonly #outputs: Float32Array[] = []

  private constructor(stft: Stft, { frameCount, overlap, fade, padding }: TrackFramesOptions) {
    const { size, hop } = stft
    this.bins = stft.bins
    this.frameCount = frameCount
    this.#stft = stft
    this.#padding = padding
    this.#lead = padding === 'reflect' ? size / 2 : size - hop
    // Half a frame at each end of a segment is unreliable, because the neighbouring segments' frames are missing there.
    const span = (frameCount - 1) * hop - size
    if (span < hop)
      throw new RangeError(
        `Segments of ${frameCount} frames of ${size} samples are too short: no part of them is reliable.`,
      )
    this.#firstFrame = Math.floor((this.#lead - size) / hop)
    this.#stepFrames = Math.max(1, Math.floor(((1 - overlap) * span) / hop))
    const step = this.#stepFrames * hop
    this.#joints = joints({ first: this.#firstFrame * hop - this.#lead + size, span, step, fade })
    this.geometry = {
      step,
      before: this.#lead - this.#firstFrame * hop,
      length: stft.samplesOf(frameCount),
      given: this.#joints.given,
    }
    this.#padded = new Float32Array(stft.samplesOf(frameCount))
  }

  /** @throws RangeError when the FFT does not support the size, or there are too few frames for a segment. */
  static async create(options: TrackFramesOptions): Promise<TrackFrames> {
    const stft = await Stft.create(options)
    try {
      return new TrackFrames(stft, options)
    } catch (error) {
      stft.close()
      throw error
    }
  }

  /** Writes the `frameCount` frames of one channel of a segment. */
  analyse(segment: Segment, channel: number, re: Float32Array, im: Float32Array, layout: SpectrumLayout): void {
    const [first, last] = this.#insideTrack(segment)
    const segmentFirst = this.#firstOf(segment)
    const skipped = (first - segmentFirst) * layout.frameStride
    this.#stft.forward(
      this.#slice(segment, channel, first, last),
      last - first,
      re.subarray(skipped),
      im.subarray(skipped),
      layout,
    )
    this.#silence(re, im, 0, first - segmentFirst, layout)
    this.#silence(re, im, last - segmentFirst, this.frameCount, layout)
  }

  /**
   * The samples that the segment contributes, from its `frameCount` frames. Valid until the next call with the same
   * `output`.
   */
  synthesise(
    segment: Segment,
    output: number,
    re: Float32Array,
    im: Float32Array,
    layout: SpectrumLayout,
  ): Float32Array {
    const [first, last] = this.#insideTrack(segment)
    const skipped = (first - this.#firstOf(segment)) * layout.frameStride
    const samples = (this.#outputs[output] ??= new Float32Array(this.#stft.samplesOf(this.frameCount)))
    this.#stft.inverse(re.subarray(skipped), im.subarray(skipped), last - first, layout, samples)
    const { start, end } = this.#joints.range(segment)
    const offset = start - this.#sampleOf(first)
    return samples.subarray(offset, offset + end - start)
  }

  estimate(segment: Segment, stems: Stems): Estimate {
    return this.#joints.estimate(segment, stems)
  }

  /** The frames of the segment that lie within the track, `[first, end)`, counted from the segment's first frame. */
  used(segment: Segment): [number, number] {
    const [first, last] = this.#insideTrack(segment)
    return [first - this.#firstOf(segment), last - this.#firstOf(segment)]
  }

  close(): void {
    this.#stft.close()
  }

  #firstOf({ index }: Segment): number {
    return this.#firstFrame + index * this.#stepFrames
  }

  #insideTrack(segment: Segment): [number, number] {
    const first = this.#firstOf(segment)
    return [Math.max(0, first), Math.min(first + this.frameCount, this.#frameCountOfTrack(segment.trackSamples))]
  }

  #frameCountOfTrack(sampleCount: number | undefined): number {
    if (sampleCount === undefined) return Infinity
    const { hop } = this.#stft
    return this.#padding === 'reflect' ? 1 + Math.floor(sampleCount / hop) : Math.ceil((sampleCount + this.#lead) / hop)
  }

  #sampleOf(frame: number): number {
    return frame * this.#stft.hop - this.#lead
  }

  #slice({ planes, start, trackSamples }: Segment, channel: number, first: number, last: number): Float32Array {
    const from = this.#sampleOf(first)
    const to = this.#sampleOf(last - 1) + this.#stft.size
    const samples = planes[channel]!
    if (this.#padding === 'reflect') return reflectedSlice({ samples, start }, from, to, trackSamples, this.#padded)
    const slice = this.#padded.subarray(0, to - from).fill(0)
    slice.set(samples.subarray(Math.max(0, from) - start, to - start), Math.max(0, from) - from)
    return slice
  }

  #silence(
    re: Float32Array,
    im: Float32Array,
    from: number,
    to: number,
    { frameStride, binStride }: SpectrumLayout,
  ): void {
    for (let frame = from; frame < to; frame++) {
      for (let bin = 0, at = frame * frameStride; bin < this.bins; bin++, at += binStride) re[at] = im[at] = 0
    }
  }
}
