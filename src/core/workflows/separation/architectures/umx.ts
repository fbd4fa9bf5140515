import { z } from 'zod'
import type { SpectrumLayout } from '../../../media/dsp/stft.js'
import { FloatPool } from '../../../media/dsp/float-pool.js'
import { architectureParameters } from '../../../models/manifest.js'
import type { Tensor } from '../../../models/session/network.js'
import type { ArchitectureFactory, NetworkRun, NetworkShape } from './architecture.js'
import { freeAxis, misfit, spectralTensors } from './network-fit.js'
import { trackFrames } from './track-frames.js'
import { type StereoSpectrum, VocalsRefinement } from '../../../media/dsp/wiener.js'

const parametersSchema = z.object({
  stft: z.object({ hop: z.number().int().positive().default(1024) }).default({ hop: 1024 }),
  /** Frames per segment, for networks with a free number of frames. */
  frames: z.number().int().positive().default(512),
  /** Steps of expectation-maximization that refine the vocals using both channels. */
  wienerSteps: z.union([z.literal(0), z.literal(1)]).default(1),
})

/**
 * Frames over which a Wiener step estimates the position of a source in the stereo field, as in the reference
 * implementation.
 */
const wienerFrames = 300

/**
 * Open-Unmix: one network from the magnitudes of the mixture `[1, 2, bins, frames]` to those of the vocals, which get
 * the mixture's phase. The remaining magnitudes are the other source; one step of expectation-maximization fits both to
 * the two channels.
 *
 * @throws StemworkError `INVALID_OPTIONS` when manifest and network do not fit
 */
export const umxArchitecture: ArchitectureFactory = async (manifest, networks, options) => {
  const parameters = architectureParameters(manifest, parametersSchema)
  const { input, output, bins, frameCount = parameters.frames } = magnitudes(networks)
  const track = await trackFrames({
    size: 2 * (bins - 1),
    hop: parameters.stft.hop,
    frameCount,
    overlap: options.overlap ?? 0.25,
    padding: 'reflect',
  })
  const pool = new FloatPool()
  // Spectra of the segments between `prepare` and `collect`: the network gets no phases.
  const waiting = new Map<number, { mixture: StereoSpectrum; peaks: Float32Array }>()
  const refinement = new VocalsRefinement({ bins, frameCount, windowFrames: wienerFrames })
  const layout: SpectrumLayout = { frameStride: bins, binStride: 1 }
  const planeLength = bins * frameCount
  const tensor = (): Tensor => ({ dims: [1, 2, bins, frameCount], data: pool.take(2 * planeLength) })
  const plane = (data: Float32Array, channel: number) =>
    data.subarray(channel * planeLength, (channel + 1) * planeLength)

  return {
    sampleRate: manifest.audio.sampleRate,
    geometry: track.geometry,
    stems: ['vocals'],
    batchAxis: freeAxis(input, 0),

    prepare(segment): NetworkRun[] {
      const mixture = { re: pool.take(2 * planeLength), im: pool.take(2 * planeLength) }
      for (const channel of [0, 1])
        track.analyse(segment, channel, plane(mixture.re, channel), plane(mixture.im, channel), layout)
      const magnitude = tensor()
      waiting.set(segment.index, { mixture, peaks: refinement.magnitudes(mixture, magnitude.data) })
      return [{ network: 0, feeds: { [input.name]: magnitude }, fetches: { [output.name]: tensor() } }]
    },

    collect(segment, runs) {
      const { feeds, fetches } = runs[0]!
      const prepared = waiting.get(segment.index)
      if (!prepared) throw new RangeError(`Segment ${segment.index} was not prepared.`)
      waiting.delete(segment.index)
      const { mixture, peaks } = prepared
      const vocals = fetches[output.name]!.data
      if (parameters.wienerSteps === 0) usePhases(mixture, vocals, bins, frameCount)
      else refinement.refine(mixture, vocals, peaks, track.used(segment))
      const planes = [0, 1].map((channel) =>
        track.synthesize(segment, channel, plane(mixture.re, channel), plane(mixture.im, channel), layout),
      )
      for (const each of [feeds[input.name]!.data, vocals, mixture.re, mixture.im]) pool.give(each)
      return track.estimate(segment, { vocals: planes })
    },

    close: () => track.close(),
  }
}

/** Turns the mixture into the vocals: the vocals' magnitudes, `[2, bins, frames]`, with the mixture's phases. */
function usePhases({ re, im }: StereoSpectrum, vocals: Float32Array, bins: number, frameCount: number): void {
  for (let row = 0, at = 0; row < 2 * frameCount; row++) {
    const start = Math.floor(row / frameCount) * bins * frameCount + (row % frameCount)
    for (let bin = 0; bin < bins; bin++, at++) {
      const magnitude = Math.sqrt(re[at]! ** 2 + im[at]! ** 2)
      const gain = magnitude > 0 ? vocals[start + bin * frameCount]! / magnitude : 0
      re[at]! *= gain
      im[at]! *= gain
    }
  }
}

function magnitudes(networks: readonly NetworkShape[]) {
  const found = spectralTensors(networks, 2)
  if (found) return found
  throw misfit(networks, 'one input and one output [batch, 2, bins, frames] with a fixed number of bins')
}
