import { z } from 'zod'
import type { SpectrumLayout } from '../../../media/dsp/stft.js'
import { FloatPool } from '../../../media/dsp/float-pool.js'
import { architectureParameters } from '../../../models/manifest.js'
import type { Tensor } from '../../../models/session/network.js'
import type { ArchitectureFactory, NetworkRun, NetworkShape } from './architecture.js'
import { axisSizes, fits, freeAxis, misfit } from './network-fit.js'
import { stemSources } from './stem-sources.js'
import { trackFrames } from './track-frames.js'

const parametersSchema = z.object({
  stft: z
    .object({ nFft: z.number().int().positive().default(4096), hop: z.number().int().positive().default(1024) })
    .default({ nFft: 4096, hop: 1024 }),
})

/** Divides silence evenly among the stems. */
const guard = 1e-10

/** The networks see nothing above 11 kHz. The mean mask of this many of their highest bands is used there. */
const extendedBands = 10

/**
 * Spleeter: one network for each stem, all from the magnitudes of the mixture `[2, splits, frames, bins]` with the
 * channels first, to those of a stem. The masks are the stems' shares in the sum of the squares. The STFT is not
 * centred: the track is surrounded by silence.
 *
 * @throws StemworkError `INVALID_OPTIONS` when manifest and networks do not fit
 */
export const spleeterArchitecture: ArchitectureFactory = async (manifest, networks, options) => {
  const { stft } = architectureParameters(manifest, parametersSchema)
  const { bands, frameCount } = magnitudes(networks, manifest.stems.length, stft.nFft)
  const track = await trackFrames({
    size: stft.nFft,
    hop: stft.hop,
    frameCount,
    overlap: options.overlap ?? 0.25,
    padding: 'zeros',
  })
  const sources = stemSources(manifest, options.stems)
  const pool = new FloatPool()
  // Spectra of the segments between `prepare` and `collect`: the networks get no phases.
  const mixtures = new Map<number, Float32Array<ArrayBuffer>>()
  const { bins } = track
  const layout: SpectrumLayout = { frameStride: bins, binStride: 1 }
  const planeLength = frameCount * bins
  const plane = (data: Float32Array, index: number) => data.subarray(index * planeLength, (index + 1) * planeLength)
  const masked = [0, 1].map(() => new Float32Array(planeLength))
  const mask = new Float32Array(bins)
  const tensor = (): Tensor => ({ dims: [2, 1, frameCount, bands], data: pool.take(2 * frameCount * bands) })

  /** Fills `mask` for one row of a channel: the share of the stems with these indices. */
  function fillMask(estimates: readonly Float32Array[], indices: readonly number[], offset: number): void {
    for (let band = 0; band < bands; band++) {
      let all = guard
      let own = (guard * indices.length) / estimates.length
      for (let index = 0; index < estimates.length; index++) {
        const power = estimates[index]![offset + band]! ** 2
        all += power
        if (indices.includes(index)) own += power
      }
      mask[band] = own / all
    }
    const highest = mask.subarray(bands - extendedBands, bands)
    mask.fill(highest.reduce((sum, value) => sum + value, 0) / extendedBands, bands)
  }

  return {
    sampleRate: manifest.audio.sampleRate,
    geometry: track.geometry,
    stems: [...sources.keys()],
    batchAxis: freeAxis(networks[0]!.inputs[0]!, 1),

    prepare(segment): NetworkRun[] {
      const mixture = pool.take(4 * planeLength)
      mixtures.set(segment.index, mixture)
      const magnitude = tensor()
      for (const channel of [0, 1]) {
        const [re, im] = [plane(mixture, 2 * channel), plane(mixture, 2 * channel + 1)]
        track.analyse(segment, channel, re, im, layout)
        for (let frame = 0, at = channel * frameCount * bands; frame < frameCount; frame++) {
          for (let bin = frame * bins; bin < frame * bins + bands; bin++, at++)
            magnitude.data[at] = Math.sqrt(re[bin]! ** 2 + im[bin]! ** 2)
        }
      }
      return networks.map(({ inputs, outputs }, network) => {
        const feed = network === 0 ? magnitude : tensor()
        if (feed !== magnitude) feed.data.set(magnitude.data)
        return { network, feeds: { [inputs[0]!.name]: feed }, fetches: { [outputs[0]!.name]: tensor() } }
      })
    },

    collect(segment, runs) {
      const mixture = mixtures.get(segment.index) ?? pool.take(0)
      mixtures.delete(segment.index)
      const estimates = runs.map(({ network, fetches }) => fetches[networks[network]!.outputs[0]!.name]!.data)
      const stems = [...sources].map(([stem, indices], stemIndex) => {
        const planes = [0, 1].map((channel) => {
          const [re, im] = [plane(mixture, 2 * channel), plane(mixture, 2 * channel + 1)]
          for (let frame = 0; frame < frameCount; frame++) {
            fillMask(estimates, indices, (channel * frameCount + frame) * bands)
            for (let bin = 0, at = frame * bins; bin < bins; bin++, at++) {
              masked[0]![at] = re[at]! * mask[bin]!
              masked[1]![at] = im[at]! * mask[bin]!
            }
          }
          return track.synthesize(segment, 2 * stemIndex + channel, masked[0]!, masked[1]!, layout)
        })
        return [stem, planes] as const
      })
      for (const { feeds, fetches } of runs)
        for (const { data } of [...Object.values(feeds), ...Object.values(fetches)]) pool.give(data)
      pool.give(mixture)
      return track.estimate(segment, Object.fromEntries(stems))
    },

    close: () => track.close(),
  }
}

function magnitudes(networks: readonly NetworkShape[], stems: number, nFft: number) {
  const { inputs } = networks[0]!
  const [, , frameCount, bands] = axisSizes(inputs[0]!)
  const shape = [2, 1, frameCount, bands]
  const fit = ({ inputs: [input, ...more], outputs: [output, ...others] }: NetworkShape) =>
    more.length + others.length === 0 && fits(input!, shape) && fits(output!, shape)
  if (
    networks.length !== stems ||
    !frameCount ||
    !bands ||
    bands < extendedBands ||
    bands > nFft / 2 ||
    !networks.every(fit)
  ) {
    throw misfit(
      networks,
      `${stems} networks, one for each stem, with one input and one output [2, splits, frames, bands] of at most ` +
        `${nFft / 2} bands`,
    )
  }
  return { frameCount, bands }
}
