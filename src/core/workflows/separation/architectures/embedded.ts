import * as z from 'zod'
import { reflectedSlice } from '../../../media/dsp/reflected-slice.js'
import type { Segment } from '../../../media/dsp/segment.js'
import { Stft } from '../../../media/dsp/stft.js'
import { FloatPool } from '../../../media/dsp/float-pool.js'
import { architectureParameters } from '../../../models/manifest.js'
import type { Tensor, TensorInfo } from '../../../models/session/network.js'
import type { ArchitectureFactory, NetworkRun, NetworkShape } from './architecture.js'
import { bandMasks } from './band-masks.js'
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
/** Frames whose spectra are in memory together, within the second-level cache. */
const analysedFrames = 16
/** Avoids a division by zero in silence. */
const silence = 1e-9

/**
 * The bundled model: one network from the band powers of the mixture, `[1, 4, frames, bands]` (mid, side, left, right),
 * to masks for its mid and side, `[1, 2, frames, bands]`, which give the vocals.
 *
 * Powers are relative to the mean of a segment, so segments must be exactly those it was evaluated with: frames
 * `[t - overlap, t + frames + overlap)` of the centred STFT of the whole track, clipped to the track and padded to a
 * multiple of 8 by repeating the last frame.
 */
export const embeddedArchitecture: ArchitectureFactory = async (manifest, networks) => {
  const {
    stft: { nFft, hop },
    bands,
    input: { framesMultipleOf },
    chunk: { frames: frameCount, overlapFrames },
  } = architectureParameters(manifest, parametersSchema)
  const masks = bandMasks(bands)
  const [inputName, outputName] = tensorNames(networks, masks.bandCount)
  const stft = await Stft.create({ size: nFft, hop })
  const pool = new FloatPool()
  const half = nFft / 2
  const step = frameCount * hop
  const sampleCount = stft.samplesOf(frameCount + 2 * overlapFrames)
  const padded = new Float32Array(sampleCount)
  const vocals = [0, 1].map(() => new Float32Array(sampleCount))
  // Frames are analysed a few at a time, and once more for the vocals: spectra of whole segments would take more memory
  // than all the rest.
  const analysed = new Float32Array(4 * analysedFrames * stft.bins)

  /** The segment's frames, `[first, end)`, counted from the start of the track. */
  function frameRange({ index, trackSamples }: Segment): [number, number] {
    const last = trackSamples === undefined ? Infinity : 1 + Math.floor(trackSamples / hop)
    return [Math.max(0, index * frameCount - overlapFrames), Math.min((index + 1) * frameCount + overlapFrames, last)]
  }

  /** The samples of frames of a channel. Valid until the next call. */
  function samplesOf({ planes, start, trackSamples }: Segment, channel: number, first: number, end: number) {
    const from = first * hop - half
    const to = from + stft.samplesOf(end - first)
    return reflectedSlice({ samples: planes[channel]!, start }, from, to, trackSamples, padded)
  }

  /** Fills the first frames of `powers`, and returns their mean. */
  function measure(segment: Segment, powers: Float32Array): number {
    const { bins } = stft
    const [first, last] = frameRange(segment)
    let total = 0
    for (let frame = first; frame < last; frame += analysedFrames) {
      const count = Math.min(analysedFrames, last - frame)
      const plane = (index: number) => analysed.subarray(index * count * bins, (index + 1) * count * bins)
      for (const channel of [0, 1]) {
        const samples = samplesOf(segment, channel, frame, frame + count)
        stft.forward(samples, count, plane(2 * channel), plane(2 * channel + 1), { frameStride: bins, binStride: 1 })
      }
      total += masks.measure({ data: analysed, frameCount: count, bins }, powers, frame - first)
    }
    return total / ((last - first) * masks.bandCount)
  }

  return {
    sampleRate: manifest.audio.sampleRate,
    geometry: {
      step,
      before: overlapFrames * hop + half,
      length: sampleCount,
    },
    stems: ['vocals'],

    prepare(segment): NetworkRun[] {
      const [first, last] = frameRange(segment)
      const [rows, row] = [Math.ceil((last - first) / framesMultipleOf) * framesMultipleOf, masks.bandCount]
      const tensor = (channels: number): Tensor => {
        const dims = [1, channels, rows, row]
        return { dims, data: pool.take(channels * rows * row) }
      }
      const powers = tensor(4)
      const { data } = powers
      const scale = 1 / (measure(segment, data) + silence)
      for (let i = 0; i < data.length; i++) data[i]! *= scale
      for (let at = (last - first) * row; at < data.length; at += rows * row) {
        for (let copy = at; copy < at + (rows - last + first) * row; copy += row) data.copyWithin(copy, at - row, at)
      }
      return [{ network: 0, feeds: { [inputName]: powers }, fetches: { [outputName]: tensor(2) } }]
    },

    collect(segment, [run]): Estimate {
      const { index, trackSamples = Infinity } = segment
      const start = index === 0 ? 0 : index * step - fadeSamples
      const isLast = (index + 1) * step >= trackSamples
      const end = isLast ? trackSamples : Math.min((index + 1) * step + fadeSamples, trackSamples)
      const [firstFrame, lastFrame] = frameRange(segment)
      const found = run!.fetches[outputName]!.data
      const from = Math.max(firstFrame, Math.floor((start - half) / hop) + 1)
      const to = Math.min(lastFrame, Math.ceil((end + half) / hop))
      const waves = vocals.map((wave) => wave.subarray(0, stft.samplesOf(to - from)))
      for (const [channel, wave] of waves.entries()) wave.set(samplesOf(segment, channel, from, to))
      sumsAndDifferences(waves, 0.5)
      for (const [side, wave] of waves.entries()) {
        const own = found.subarray((side * found.length) / 2, ((side + 1) * found.length) / 2)
        stft.filter(wave, to - from, (re, im, frame) => masks.apply(own, from - firstFrame + frame, re, im))
      }
      sumsAndDifferences(waves, 1)
      for (const data of [run!.feeds[inputName]!.data, found]) pool.give(data)
      const offset = start - (from * hop - half)
      const stems = waves.map((wave) => wave.subarray(offset, offset + end - start))
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

/** Left and right to mid and side, and back. */
function sumsAndDifferences([one, other]: Float32Array[], scale: number): void {
  for (let i = 0; i < one!.length; i++) {
    const [a, b] = [one![i]!, other![i]!]
    one![i] = scale * (a + b)
    other![i] = scale * (a - b)
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
