import * as z from 'zod'
import { reflectedSlice } from '../../../media/dsp/reflected-slice.js'
import type { Segment } from '../../../media/dsp/segment.js'
import { Stft, type SpectrumLayout } from '../../../media/dsp/stft.js'
import { FloatPool } from '../../../media/dsp/float-pool.js'
import { architectureParameters, type Manifest } from '../../../models/manifest.js'
import type { Tensor, TensorInfo } from '../../../models/session/network.js'
import type { Architecture, NetworkRun, NetworkShape } from './architecture.js'
import { BandMasks, type StereoFrames } from './band-masks.js'
import { fits, misfit } from './network-fit.js'
import type { Estimate } from '../../../models/stems.js'

const count = z.number().int().positive()
const parametersSchema = z.object({
  stft: z.object({ nFft: count, hop: count }),
  /** First bin, end and bins per band. */
  bands: z.array(z.tuple([z.number().int().nonnegative(), count, count])).min(1),
  input: z.object({ framesMultipleOf: count }),
  chunk: z.object({ frames: count, overlapFrames: z.number().int().nonnegative() }),
})

/** Half the length of the cross-fade between two segments: 93 ms, twice what overlapping frames alone would give. */
const fadeSamples = 4096

// Linear, because the two estimates are nearly equal: the weights of neighbouring segments add up to one.
const rising = Float32Array.from({ length: 2 * fadeSamples }, (_, i) => (i + 0.5) / (2 * fadeSamples))
const falling = rising.toReversed()
const none = new Float32Array(0)
/** Keeps silence from being divided by nothing. */
const silence = 1e-9

/**
 * The bundled model: one network from the band powers of the mixture, `[1, 4, frames, bands]` (mid, side, left, right),
 * to masks for its mid and side, `[1, 2, frames, bands]`, which give the vocals.
 *
 * Powers are relative to the mean of a segment, so segments must be exactly those it was evaluated with: frames
 * `[t - overlap, t + frames + overlap)` of the centred STFT of the whole track, clipped to the track and padded to a
 * multiple of 8 by repeating the last frame.
 */
export async function embeddedArchitecture(
  manifest: Manifest,
  networks: readonly NetworkShape[],
): Promise<Architecture> {
  const {
    stft: { nFft, hop },
    bands,
    input: { framesMultipleOf },
    chunk: { frames: frameCount, overlapFrames },
  } = architectureParameters(manifest, parametersSchema)
  const masks = new BandMasks(bands)
  const [inputName, outputName] = tensorNames(networks, masks.bandCount)
  const stft = await Stft.create({ size: nFft, hop })
  const [pool, spectra] = [new FloatPool(), new FloatPool()]
  const { bins } = stft
  const half = nFft / 2
  const step = frameCount * hop
  const layout: SpectrumLayout = { frameStride: bins, binStride: 1 }
  const padded = new Float32Array(stft.samplesOf(frameCount + 2 * overlapFrames))
  const vocals = [0, 1].map(() => new Float32Array(stft.samplesOf(frameCount + 2 * overlapFrames)))
  // Spectra of the segments between `prepare` and `collect`: the network sees none.
  const waiting = new Map<number, StereoFrames & { data: Float32Array<ArrayBuffer> }>()

  /** The segment's frames, `[first, end)`, counted from the start of the track. */
  function frameRange({ index, trackSamples }: Segment): [number, number] {
    const last = trackSamples === undefined ? Infinity : 1 + Math.floor(trackSamples / hop)
    return [Math.max(0, index * frameCount - overlapFrames), Math.min((index + 1) * frameCount + overlapFrames, last)]
  }

  function plane({ data }: StereoFrames, index: number): Float32Array {
    const length = data.length / 4
    return data.subarray(index * length, (index + 1) * length)
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
      const total = last - first
      const mixture = { data: spectra.take(4 * total * bins), frameCount: total, bins }
      waiting.set(segment.index, mixture)
      segment.planes.forEach((samples, channel) => {
        const from = first * hop - half
        const slice = reflectedSlice(
          { samples, start: segment.start },
          from,
          from + stft.samplesOf(total),
          segment.trackSamples,
          padded,
        )
        stft.forward(slice, total, plane(mixture, 2 * channel), plane(mixture, 2 * channel + 1), layout)
      })
      const [rows, row] = [Math.ceil(total / framesMultipleOf) * framesMultipleOf, masks.bandCount]
      const tensor = (channels: number): Tensor => {
        const dims = [1, channels, rows, row]
        return { dims, data: pool.take(channels * rows * row) }
      }
      const powers = tensor(4)
      const scale = 1 / (masks.measure(mixture, powers.data, rows) + silence)
      for (let i = 0; i < powers.data.length; i++) powers.data[i]! *= scale
      return [{ network: 0, feeds: { [inputName]: powers }, fetches: { [outputName]: tensor(2) } }]
    },

    collect(segment, [run]): Estimate {
      const { index, trackSamples = Infinity } = segment
      const start = index === 0 ? 0 : index * step - fadeSamples
      const isLast = (index + 1) * step >= trackSamples
      const end = isLast ? trackSamples : Math.min((index + 1) * step + fadeSamples, trackSamples)
      const [firstFrame, lastFrame] = frameRange(segment)
      const mixture = waiting.get(index)
      if (!mixture) throw new RangeError(`Segment ${index} was not prepared.`)
      waiting.delete(index)
      const found = run!.fetches[outputName]!.data
      masks.apply(found, mixture)
      for (const data of [run!.feeds[inputName]!.data, found]) pool.give(data)
      const from = Math.max(firstFrame, Math.floor((start - half) / hop) + 1)
      const to = Math.min(lastFrame, Math.ceil((end + half) / hop))
      const offset = start - (from * hop - half)
      const stems = vocals.map((samples, channel) => {
        const skipped = (from - firstFrame) * bins
        stft.inverse(
          plane(mixture, 2 * channel).subarray(skipped),
          plane(mixture, 2 * channel + 1).subarray(skipped),
          to - from,
          layout,
          samples,
        )
        return samples.subarray(offset, offset + end - start)
      })
      spectra.give(mixture.data)
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

function tensorNames(networks: readonly NetworkShape[], bands: number): [string, string] {
  const { inputs, outputs } = networks[0]!
  const isOne = networks.length === 1 && inputs.length === 1 && outputs.length === 1
  const fitsAll = (info: TensorInfo, channels: number) => fits(info, [1, channels, undefined, bands])
  if (!isOne || !fitsAll(inputs[0]!, 4) || !fitsAll(outputs[0]!, 2))
    throw misfit(networks, `one input [1, 4, frames, ${bands}] and one output [1, 2, frames, ${bands}]`)
  return [inputs[0]!.name, outputs[0]!.name]
}
