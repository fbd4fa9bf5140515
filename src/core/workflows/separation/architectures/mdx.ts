import { z } from 'zod'
import type { SpectrumLayout } from '../../../media/dsp/stft.js'
import { FloatPool } from '../../../media/dsp/float-pool.js'
import { architectureParameters } from '../../../models/manifest.js'
import type { Tensor } from '../../../models/session/network.js'
import type { ArchitectureFactory, NetworkRun, NetworkShape } from './architecture.js'
import type { StemName } from '../../../models/stems.js'
import { freeAxis, misfit, spectralTensors } from './network-fit.js'
import { trackFrames } from './track-frames.js'

const parametersSchema = z.object({
  /** The frame length cannot be read from the network: models of the same shape use different ones. */
  stft: z.object({ nFft: z.number().int().positive(), hop: z.number().int().positive().default(1024) }),
  /** Gain of the network's output. */
  compensation: z.number().positive().default(1),
  /** The stem that the network outputs. */
  primary: z.enum(['vocals', 'instrumental']),
})

/** These networks were trained without the lowest bins, up to about 20 Hz. */
const mutedBins = 3

/**
 * The MDX-Net family of the Ultimate Vocal Remover: one network from the complex spectrum of the mixture to that of its
 * primary stem, both `[batch, 4, bins, frames]` with the channels L.re, L.im, R.re, R.im. The highest
 * bins may be missing.
 *
 * @throws StemworkError `INVALID_OPTIONS` when manifest and network do not fit
 */
export const mdxArchitecture: ArchitectureFactory = async (manifest, networks, options) => {
  const { stft, compensation, primary } = architectureParameters(manifest, parametersSchema)
  const { input, output, bins, frameCount } = spectra(networks, stft.nFft)
  const track = await trackFrames({
    size: stft.nFft,
    hop: stft.hop,
    bins,
    frameCount,
    overlap: options.overlap ?? 0.25,
    padding: 'reflect',
  })
  const pool = new FloatPool()
  const layout: SpectrumLayout = { frameStride: 1, binStride: frameCount }
  const stem: StemName = primary === 'vocals' ? 'vocals' : 'accompaniments'
  const planeLength = bins * frameCount
  const tensor = (): Tensor => ({ dims: [1, 4, bins, frameCount], data: pool.take(4 * planeLength) })
  const plane = ({ data }: Tensor, index: number) => data.subarray(index * planeLength, (index + 1) * planeLength)

  return {
    sampleRate: manifest.audio.sampleRate,
    geometry: track.geometry,
    stems: [stem],
    batchAxis: freeAxis(input, 0),

    prepare(segment): NetworkRun[] {
      const mixture = tensor()
      for (const channel of [0, 1]) {
        const [re, im] = [plane(mixture, 2 * channel), plane(mixture, 2 * channel + 1)]
        track.analyse(segment, channel, re, im, layout)
        for (const values of [re, im]) values.fill(0, 0, mutedBins * frameCount)
      }
      const inputs = options.denoise ? [mixture, negative(mixture, tensor())] : [mixture]
      return inputs.map((data) => ({ network: 0, feeds: { [input.name]: data }, fetches: { [output.name]: tensor() } }))
    },

    collect(segment, runs) {
      const [estimate, opposite] = runs.map(({ fetches }) => fetches[output.name]!)
      const { data } = estimate!
      if (opposite) for (let i = 0; i < data.length; i++) data[i] = (data[i]! - opposite.data[i]!) / 2
      for (let i = 0; i < data.length; i++) data[i]! *= compensation
      const planes = [0, 1].map((channel) =>
        track.synthesize(segment, channel, plane(estimate!, 2 * channel), plane(estimate!, 2 * channel + 1), layout),
      )
      for (const { feeds, fetches } of runs) {
        for (const { data } of [feeds[input.name]!, fetches[output.name]!]) pool.give(data)
      }
      return track.estimate(segment, { [stem]: planes })
    },

    close: () => track.close(),
  }
}

function negative(tensor: Tensor, into: Tensor): Tensor {
  for (let i = 0; i < tensor.data.length; i++) into.data[i] = -tensor.data[i]!
  return into
}

function spectra(networks: readonly NetworkShape[], nFft: number) {
  const mostBins = nFft / 2 + 1
  const found = spectralTensors(networks, 4)
  if (found?.frameCount && found.bins <= mostBins) return { ...found, frameCount: found.frameCount }
  const sizes = `of fixed sizes with at most ${mostBins} bins`
  throw misfit(networks, `one input and one output [batch, 4, bins, frames] ${sizes}`)
}
