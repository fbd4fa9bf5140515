import { z } from 'zod'
import { reflectedSlice } from '../../../media/dsp/reflected-slice.js'
import { Stft, type SpectrumLayout } from '../../../media/dsp/stft.js'
import { FloatPool } from '../../../media/dsp/float-pool.js'
import { architectureParameters } from '../../../models/manifest.js'
import type { Tensor } from '../../../models/session/network.js'
import type { ArchitectureFactory, NetworkRun, NetworkShape } from './architecture.js'
import type { Stems } from '../../../models/stems.js'
import { freeAxis, misfit, spectralTensors } from './network-fit.js'
import { stemSources, sumOfParts } from './stem-sources.js'
import { trackWaves } from './track-waves.js'

const parametersSchema = z.object({
  stft: z.object({ hop: z.number().int().positive().default(1024) }).default({ hop: 1024 }),
  /**
   * Length of a segment; the remaining frames of the network are silent. Default: 11 s, the length SCNet was trained
   * with.
   */
  segmentSamples: z.number().int().positive().optional(),
})

const trainedSeconds = 11

/**
 * SCNet: one network from the spectrum of the mixture `[1, 4, bins, frames]`, channels L.re, L.im, R.re, R.im, to those
 * of the stems, one after another, `[1, 4 * stems, bins, frames]`. The track is normalized as a whole; the centred STFT
 * of each segment has a rectangular window and is scaled by `1 / sqrt(n_fft)`.
 *
 * @throws StemworkError `INVALID_OPTIONS` when manifest and network do not fit
 */
export const scnetArchitecture: ArchitectureFactory = async (manifest, networks, options) => {
  const {
    stft: { hop },
    segmentSamples,
  } = architectureParameters(manifest, parametersSchema)
  const { sampleRate } = manifest.audio
  const stemCount = manifest.stems.length
  const { input, output, bins, frameCount } = spectra(networks, stemCount)
  const size = 2 * (bins - 1)
  const padded = (frameCount - 1) * hop
  const length = Math.min(segmentSamples ?? trainedSeconds * sampleRate, padded)
  const waves = trackWaves(length, options.overlap ?? 0.5)
  const sources = stemSources(manifest, options.stems)
  // This window scales the spectrum by 1 / sqrt(size), and the inverse undoes it.
  const stft = await Stft.create({ size, hop, window: new Float32Array(size).fill(1 / Math.sqrt(size)) })
  const pool = new FloatPool()
  const layout: SpectrumLayout = { frameStride: 1, binStride: frameCount }
  const planeLength = bins * frameCount
  const wave = new Float32Array(padded)
  const scratch = new Float32Array(padded + size)
  const sum = new Float32Array(2 * planeLength)
  const outputs = new Map([...sources.keys()].map((stem) => [stem, [0, 1].map(() => new Float32Array(padded + size))]))
  const tensor = (channels: number): Tensor => ({
    dims: [1, channels, bins, frameCount],
    data: pool.take(channels * planeLength),
  })
  const plane = (data: Float32Array, index: number) => data.subarray(index * planeLength, (index + 1) * planeLength)

  return {
    sampleRate,
    geometry: waves.geometry,
    stems: [...sources.keys()],
    needsTrackStatistics: true,
    batchAxis: freeAxis(input, 0),

    prepare(segment, statistics): NetworkRun[] {
      const mixture = tensor(4)
      for (const channel of [0, 1]) {
        waves.normalize(segment, channel, statistics, wave.subarray(0, length))
        const centred = reflectedSlice({ samples: wave, start: 0 }, -size / 2, padded + size / 2, padded, scratch)
        stft.forward(
          centred,
          frameCount,
          plane(mixture.data, 2 * channel),
          plane(mixture.data, 2 * channel + 1),
          layout,
        )
      }
      return [{ network: 0, feeds: { [input.name]: mixture }, fetches: { [output.name]: tensor(4 * stemCount) } }]
    },

    collect(segment, runs, statistics) {
      const { feeds, fetches } = runs[0]!
      const { data } = fetches[output.name]!
      const stems: Stems = {}
      for (const [stem, planes] of outputs) {
        const indices = sources.get(stem) ?? []
        stems[stem] = planes.map((samples, channel) => {
          const pairs = indices.map((index) =>
            data.subarray((4 * index + 2 * channel) * planeLength, (4 * index + 2 * channel + 2) * planeLength),
          )
          const pair = sumOfParts(pairs, sum)
          stft.inverse(plane(pair, 0), plane(pair, 1), frameCount, layout, samples)
          return samples.subarray(size / 2, size / 2 + length)
        })
      }
      for (const { data } of [feeds[input.name]!, fetches[output.name]!]) pool.give(data)
      return waves.estimate(segment, stems, statistics, sources)
    },

    close: () => stft.close(),
  }
}

function spectra(networks: readonly NetworkShape[], stems: number) {
  const found = spectralTensors(networks, 4, 4 * stems)
  if (found?.frameCount) return { ...found, frameCount: found.frameCount }
  const output = `one output [1, ${4 * stems}, bins, frames]`
  throw misfit(networks, `one input [1, 4, bins, frames] of fixed sizes and ${output}`)
}
