import { reflectedSlice } from '../../../media/dsp/reflected-slice.js'
import type { Segment, SegmentGeometry } from '../../../media/dsp/segment.js'
import { Stft, type SpectrumLayout, type StftOptions } from '../../../media/dsp/stft.js'
import { joints } from './joints.js'

export interface TrackFramesOptions extends StftOptions {
  /** Frames per segment: the network's input size. */
  frameCount: number
  /** Fraction by which neighbouring segments overlap. */
  overlap: number
  /** Longest cross-fade, in samples. Default: the whole overlap. */
  fade?: number
  /**
   * Padding of the track. `reflect`: the frames are those of the centred STFT, frame `t` around sample `t * hop`.
   * `zeros`: frame `t` ends with sample `(t + 1) * hop - 1`, and every frame that covers a sample counts.
   */
  padding: 'reflect' | 'zeros'
}

/**
 * Cuts the STFT of the whole track into segments of a fixed number of frames, and turns the separated frames back into
 * audio.
 *
 * Frames beyond the track are silent and frames inside it are computed from the real audio around them. Samples that
 * frames of other segments reach into are dropped. So a mask over frequencies has exactly the same effect as on the
 * STFT of the whole track, however the track is segmented.
 *
 * @throws RangeError when the FFT does not support the size, or there are too few frames for a segment.
 */
export async function trackFrames(options: TrackFramesOptions) {
  const stft = await Stft.create(options)
  try {
    return framesOf(stft, options)
  } catch (error) {
    stft.close()
    throw error
  }
}

function framesOf(stft: Stft, { frameCount, overlap, fade, padding }: TrackFramesOptions) {
  const { size, hop, bins } = stft
  /** Samples from the start of frame 0 to the start of the track. */
  const lead = padding === 'reflect' ? size / 2 : size - hop
  // Half a frame at each end of a segment is unreliable, because the neighbouring segments' frames are missing there.
  const span = (frameCount - 1) * hop - size
  if (span < hop)
    throw new RangeError(
      `Segments of ${frameCount} frames of ${size} samples are too short: no part of them is reliable.`,
    )
  /** Index of the first frame of segment 0: 0 or less. */
  const firstFrame = Math.floor((lead - size) / hop)
  const stepFrames = Math.max(1, Math.floor(((1 - overlap) * span) / hop))
  const step = stepFrames * hop
  const { range, given, estimate } = joints({ first: firstFrame * hop - lead + size, span, step, fade })
  const length = stft.samplesOf(frameCount)
  const geometry: SegmentGeometry = { step, before: lead - firstFrame * hop, length, given }
  const padded = new Float32Array(length)
  const outputs: Float32Array[] = []

  const firstOf = ({ index }: Segment) => firstFrame + index * stepFrames
  const sampleOf = (frame: number) => frame * hop - lead

  const frameCountOfTrack = (sampleCount = Infinity) =>
    padding === 'reflect' ? 1 + Math.floor(sampleCount / hop) : Math.ceil((sampleCount + lead) / hop)

  const insideTrack = (segment: Segment): [number, number] => {
    const first = firstOf(segment)
    return [Math.max(0, first), Math.min(first + frameCount, frameCountOfTrack(segment.trackSamples))]
  }

  const slice = ({ planes, start, trackSamples }: Segment, channel: number, first: number, last: number) => {
    const from = sampleOf(first)
    const to = sampleOf(last - 1) + size
    const samples = planes[channel]!
    if (padding === 'reflect') return reflectedSlice({ samples, start }, from, to, trackSamples, padded)
    const part = padded.subarray(0, to - from).fill(0)
    part.set(samples.subarray(Math.max(0, from) - start, to - start), Math.max(0, from) - from)
    return part
  }

  const silence = (
    [re, im]: readonly [Float32Array, Float32Array],
    from: number,
    to: number,
    { frameStride, binStride }: SpectrumLayout,
  ) => {
    for (let frame = from; frame < to; frame++) {
      for (let bin = 0, at = frame * frameStride; bin < bins; bin++, at += binStride) re[at] = im[at] = 0
    }
  }

  return {
    bins,
    geometry,
    estimate,
    close: () => stft.close(),

    /** Writes the `frameCount` frames of one channel of a segment. */
    analyse(segment: Segment, channel: number, re: Float32Array, im: Float32Array, layout: SpectrumLayout): void {
      const [first, last] = insideTrack(segment)
      const segmentFirst = firstOf(segment)
      const skipped = (first - segmentFirst) * layout.frameStride
      const samples = slice(segment, channel, first, last)
      stft.forward(samples, last - first, re.subarray(skipped), im.subarray(skipped), layout)
      silence([re, im], 0, first - segmentFirst, layout)
      silence([re, im], last - segmentFirst, frameCount, layout)
    },

    /**
     * The samples that the segment contributes, from its `frameCount` frames. Valid until the next call with the same
     * `output`.
     */
    synthesize(
      segment: Segment,
      output: number,
      re: Float32Array,
      im: Float32Array,
      layout: SpectrumLayout,
    ): Float32Array {
      const [first, last] = insideTrack(segment)
      const skipped = (first - firstOf(segment)) * layout.frameStride
      const samples = (outputs[output] ??= new Float32Array(length))
      stft.inverse(re.subarray(skipped), im.subarray(skipped), last - first, layout, samples)
      const { start, end } = range(segment)
      const offset = start - sampleOf(first)
      return samples.subarray(offset, offset + end - start)
    },

    /** The frames of the segment that lie within the track, `[first, end)`, counted from the segment's first frame. */
    used(segment: Segment): [number, number] {
      const [first, last] = insideTrack(segment)
      return [first - firstOf(segment), last - firstOf(segment)]
    },
  }
}
