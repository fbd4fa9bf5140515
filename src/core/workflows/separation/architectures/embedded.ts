import * as z from 'zod'
import { StemworkError } from '../../../engine/errors.js'
import { reflectedSlice } from '../../../media/dsp/reflected-slice.js'
import type { Segment } from '../../../media/dsp/segment.js'
import { Stft, type SpectrumLayout } from '../../../media/dsp/stft.js'
import { FloatPool } from '../../../media/dsp/float-pool.js'
import { architectureParameters, type Manifest } from '../../../models/manifest.js'
import type { Tensor } from '../../../models/session/network.js'
import type { Architecture, NetworkRun, NetworkShape } from './architecture.js'
import type { Estimate } from '../../../models/stems.js'

const parametersSchema = z.object({
  stft: z.object({ nFft: z.number().int().positive(), hop: z.number().int().positive() }),
  input: z.object({ framesMultipleOf: z.number().int().positive() }),
  chunk: z.object({ frames: z.number().int().positive(), overlapFrames: z.number().int().nonnegative() }),
})

/** Half the length of the cross-fade between two segments: 93 ms, twice what overlapping frames alone would give. */
const fadeSamples = 4096

// Linear, because the two estimates are nearly equal: the weights of neighbouring segments add up to one.
const rising = Float32Array.from({ length: 2 * fadeSamples }, (_, i) => (i + 0.5) / (2 * fadeSamples))
const falling = rising.toReversed()
const none = new Float32Array(0)

/**
 * The bundled model: one network from the complex spectrum of the mixture to that of the vocals, both
 * `[1, 4, frames, bins]` with the channels L.re, L.im, R.re, R.im.
 *
 * The network normalises each segment by that segment's own mean power, so segments must be exactly those it was
 * evaluated with: frames `[t - overlap, t + frames + overlap)` of the centred STFT of the whole track, clipped to the
 * track and padded to a multiple of 8 by repeating the last frame.
 */
export async function embeddedArchitecture(
  manifest: Manifest,
  networks: readonly NetworkShape[],
): Promise<Architecture> {
  const {
    stft: { nFft, hop },
    input: { framesMultipleOf },
    chunk: { frames: frameCount, overlapFrames },
  } = architectureParameters(manifest, parametersSchema)
  const [inputName, outputName] = tensorNames(networks, nFft / 2 + 1)
  const stft = await Stft.create({ size: nFft, hop })
  const pool = new FloatPool()
  const { bins } = stft
  const half = nFft / 2
  const step = frameCount * hop
  const layout: SpectrumLayout = { frameStride: bins, binStride: 1 }
  const padded = new Float32Array(stft.samplesOf(frameCount + 2 * overlapFrames))
  const vocals = [0, 1].map(() => new Float32Array(stft.samplesOf(frameCount + 2 * overlapFrames)))

  /** The segment's frames, `[first, end)`, counted from the start of the track. */
  function frameRange({ index, trackSamples }: Segment): [number, number] {
    const last = trackSamples === undefined ? Infinity : 1 + Math.floor(trackSamples / hop)
    return [Math.max(0, index * frameCount - overlapFrames), Math.min((index + 1) * frameCount + overlapFrames, last)]
  }

  function plane(tensor: Tensor, index: number): Float32Array {
    const length = tensor.data.length / 4
    return tensor.data.subarray(index * length, (index + 1) * length)
  }

  return {
    sampleRate: manifest.audio.sampleRate,
    geometry: {
      step,
      before: overlapFrames * hop + half,
      length: stft.samplesOf(frameCount + 2 * overlapFrames),
    },
    stems: ['vocals'],
    needsTrackStatistics: false,

    prepare(segment): NetworkRun[] {
      const [first, last] = frameRange(segment)
      const count = last - first
      const rows = Math.ceil(count / framesMultipleOf) * framesMultipleOf
      const tensor = (): Tensor => ({ dims: [1, 4, rows, bins], data: pool.take(4 * rows * bins) })
      const input = tensor()
      segment.planes.forEach((samples, channel) => {
        const re = plane(input, 2 * channel)
        const im = plane(input, 2 * channel + 1)
        const from = first * hop - half
        const slice = reflectedSlice(
          { samples, start: segment.start },
          from,
          from + stft.samplesOf(count),
          segment.trackSamples,
          padded,
        )
        stft.forward(slice, count, re, im, layout)
        for (let row = count; row < rows; row++) {
          for (const values of [re, im]) values.copyWithin(row * bins, (count - 1) * bins, count * bins)
        }
      })
      return [{ network: 0, feeds: { [inputName]: input }, fetches: { [outputName]: tensor() } }]
    },

    collect(segment, [run]): Estimate {
      const { index, trackSamples = Infinity } = segment
      const start = index === 0 ? 0 : index * step - fadeSamples
      const isLast = (index + 1) * step >= trackSamples
      const end = isLast ? trackSamples : Math.min((index + 1) * step + fadeSamples, trackSamples)
      const output = run!.fetches[outputName]!
      const [firstFrame, lastFrame] = frameRange(segment)
      const from = Math.max(firstFrame, Math.floor((start - half) / hop) + 1)
      const to = Math.min(lastFrame, Math.ceil((end + half) / hop))
      const offset = start - (from * hop - half)
      const stems = vocals.map((samples, channel) => {
        const skipped = (from - firstFrame) * bins
        stft.inverse(
          plane(output, 2 * channel).subarray(skipped),
          plane(output, 2 * channel + 1).subarray(skipped),
          to - from,
          layout,
          samples,
        )
        return samples.subarray(offset, offset + end - start)
      })
      for (const { data } of [run!.feeds[inputName]!, output]) pool.give(data)
      return {
        start,
        stems: { vocals: stems },
        sampleCount: end - start,
        fadeIn: index === 0 ? none : rising.subarray(0, end - start),
        fadeOut: isLast ? none : falling.subarray(0, end - ((index + 1) * step - fadeSamples)),
        finishedBefore: isLast ? end : (index + 1) * step - fadeSamples,
      }
    },

    close: () => stft.close(),
  }
}

function tensorNames(networks: readonly NetworkShape[], bins: number): [string, string] {
  const [network] = networks
  const fits = (shape: readonly (number | string)[]) => shape.length === 4 && shape[1] === 4 && shape[3] === bins
  if (
    networks.length !== 1 ||
    network!.inputs.length !== 1 ||
    network!.outputs.length !== 1 ||
    ![...network!.inputs, ...network!.outputs].every(({ shape }) => fits(shape))
  ) {
    const found = networks.flatMap(({ inputs, outputs }) =>
      [...inputs, ...outputs].map(({ name, shape }) => `${name} [${shape.join(', ')}]`),
    )
    throw new StemworkError(
      'INVALID_OPTIONS',
      `The model does not fit its architecture: expected one input and one output [1, 4, frames, ${bins}]; found ` +
        `${found.join('; ')}. Correct the manifest.`,
    )
  }
  return [network!.inputs[0]!.name, network!.outputs[0]!.name]
}
