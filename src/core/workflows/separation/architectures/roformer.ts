import { z } from 'zod'
import type { SpectrumLayout } from '../../../media/dsp/stft.js'
import { FloatPool } from '../../../media/dsp/float-pool.js'
import { architectureParameters } from '../../../models/manifest.js'
import type { Tensor, TensorInfo } from '../../../models/session/network.js'
import type { ArchitectureFactory, NetworkRun, NetworkShape } from './architecture.js'
import { axisSizes, fits, freeAxis, misfit } from './network-fit.js'
import { stemSources } from './stem-sources.js'
import { trackFrames } from './track-frames.js'

const parametersSchema = z.object({
  stft: z.object({ hop: z.number().int().positive().default(441) }).default({ hop: 441 }),
  /** Frames per segment, for networks with a free number of frames. */
  frames: z.number().int().positive().default(801),
})

/** Share of a segment over which neighbours are cross-faded. */
const fadeShare = 0.1

/**
 * Band-split and mel-band RoFormer: from the complex spectrum of the mixture to a complex mask for each stem, which
 * multiplies it. A row is `2 * bin + channel`. Two layouts: `[1, rows, frames, 2]` with masks
 * `[1, stems, rows, frames, 2]`, and `[1, frames, 2 * rows]`, where each row holds the real and then the imaginary
 * part, with masks `[1, (stems,) frames, 2 * rows]`. The constant component is silent.
 *
 * @throws StemworkError `INVALID_OPTIONS` when manifest and network do not fit
 */
export const roformerArchitecture: ArchitectureFactory = async (manifest, networks, options) => {
  const parameters = architectureParameters(manifest, parametersSchema)
  const { hop } = parameters.stft
  const {
    input,
    output,
    rows,
    frameCount = parameters.frames,
    isFrameMajor,
  } = findLayout(networks, manifest.stems.length)
  const bins = rows / 2
  const track = await trackFrames({
    size: 2 * (bins - 1),
    hop,
    frameCount,
    overlap: options.overlap ?? 0.5,
    fade: Math.round(fadeShare * (frameCount - 1) * hop),
    padding: 'reflect',
  })
  const sources = stemSources(manifest, options.stems)
  const pool = new FloatPool()
  const stemCount = manifest.stems.length
  const stemLength = 2 * rows * frameCount
  const layout: SpectrumLayout = isFrameMajor
    ? { frameStride: 2 * rows, binStride: 4 }
    : { frameStride: 2, binStride: 4 * frameCount }
  const channelOffset = isFrameMajor ? 2 : 2 * frameCount
  const dims = isFrameMajor ? [1, frameCount, 2 * rows] : [1, rows, frameCount, 2]
  const masked = new Float32Array(stemLength)

  /** The real and imaginary parts of one channel of a spectrum. */
  const parts = (data: Float32Array, channel: number) =>
    [data.subarray(channel * channelOffset), data.subarray(channel * channelOffset + 1)] as const

  /** Multiplies the spectrum by the sum of the masks of these stems. */
  function applyMasks(spectrum: Float32Array, masks: Float32Array, indices: readonly number[]): void {
    for (let at = 0; at < stemLength; at += 2) {
      let re = 0
      let im = 0
      for (const index of indices) {
        re += masks[index * stemLength + at]!
        im += masks[index * stemLength + at + 1]!
      }
      masked[at] = spectrum[at]! * re - spectrum[at + 1]! * im
      masked[at + 1] = spectrum[at]! * im + spectrum[at + 1]! * re
    }
    for (const channel of [0, 1]) {
      const [re, im] = parts(masked, channel)
      for (let frame = 0; frame < frameCount; frame++)
        re[frame * layout.frameStride] = im[frame * layout.frameStride] = 0
    }
  }

  return {
    sampleRate: manifest.audio.sampleRate,
    geometry: track.geometry,
    stems: [...sources.keys()],
    batchAxis: freeAxis(input, 0),

    prepare(segment): NetworkRun[] {
      const tensor = (sizes: readonly number[], length: number): Tensor => ({ dims: sizes, data: pool.take(length) })
      const mixture = tensor(dims, stemLength)
      for (const channel of [0, 1]) track.analyse(segment, channel, ...parts(mixture.data, channel), layout)
      const hasStemAxis = output.shape.length > dims.length
      const masks = tensor(hasStemAxis ? [1, stemCount, ...dims.slice(1)] : dims, stemCount * stemLength)
      return [{ network: 0, feeds: { [input.name]: mixture }, fetches: { [output.name]: masks } }]
    },

    collect(segment, runs) {
      const { feeds, fetches } = runs[0]!
      const mixture = feeds[input.name]!.data
      const masks = fetches[output.name]!.data
      const stems = [...sources].map(([stem, indices], stemIndex) => {
        applyMasks(mixture, masks, indices)
        const planes = [0, 1].map((channel) =>
          track.synthesize(segment, 2 * stemIndex + channel, ...parts(masked, channel), layout),
        )
        return [stem, planes] as const
      })
      for (const data of [mixture, masks]) pool.give(data)
      return track.estimate(segment, Object.fromEntries(stems))
    },

    close: () => track.close(),
  }
}

function findLayout(networks: readonly NetworkShape[], stems: number) {
  const { inputs, outputs } = networks[0]!
  const [input, output] = [inputs[0]!, outputs[0]!]
  const { isFrameMajor, rows, frameCount } = spectrumAxes(input)
  const inner = isFrameMajor ? [frameCount, 2 * rows] : [rows, frameCount, 2]
  const isOne = networks.length === 1 && inputs.length === 1 && outputs.length === 1
  const isInput = fits(input, [undefined, ...inner]) && rows >= 4 && rows % 2 === 0
  const isOutput =
    fits(output, [undefined, stems, ...inner]) || (stems === 1 && isFrameMajor && fits(output, [undefined, ...inner]))
  if (!isOne || !isInput || !isOutput) {
    throw misfit(
      networks,
      `a spectrum [1, rows, frames, 2] and ${stems} masks [1, ${stems}, rows, frames, 2], or [1, frames, 2 * rows] ` +
        `and [1, ${stems}, frames, 2 * rows]`,
    )
  }
  return { input, output, rows, frameCount, isFrameMajor }
}

/** The axes of `[1, frames, 2 * rows]` or `[1, rows, frames, 2]`. */
function spectrumAxes(input: TensorInfo) {
  const [, first, second] = axisSizes(input)
  return input.shape.length === 3
    ? { isFrameMajor: true, rows: (second ?? 0) / 2, frameCount: first }
    : { isFrameMajor: false, rows: first ?? 0, frameCount: second }
}
