import { reflectedSlice } from '../../../media/dsp/reflected-slice.js'
import { periodicHann } from '../../../media/dsp/fft.js'
import { Stft, type SpectrumLayout } from '../../../media/dsp/stft.js'
import { FloatPool } from '../../../media/dsp/float-pool.js'
import type { Tensor, TensorInfo } from '../../../models/session/network.js'
import type { ArchitectureFactory, NetworkRun, NetworkShape } from './architecture.js'
import type { Stems } from '../../../models/stems.js'
import { axisSizes, fits, freeAxis, misfit } from './network-fit.js'
import { stemSources, sumOfParts } from './stem-sources.js'
import { trackWaves } from './track-waves.js'

/** Frames dropped at each end of a waveform's spectrum before it is passed to the network. */
const droppedFrames = 2

/**
 * Hybrid Transformer Demucs: from the waveform `[1, 2, samples]` to the stems' waveforms `[1, stems, 2, samples]`.
 * Exports without the STFT also take the spectrum `[1, 4, bins, frames]` and return the stems' spectra
 * `[1, stems, 4, bins, frames]`, channels L.re, L.im, R.re, R.im. A stem is the sum of its waveform and the inverse of
 * its spectrum. The spectrum is the centred STFT with the hop `n_fft / 4`, scaled by `1 / sqrt(n_fft)`, of the waveform
 * reflected by 1.5 hops at both ends, without two frames at each end and without the highest bin (`_spec` and `_ispec`
 * of the reference implementation).
 *
 * @throws StemworkError `INVALID_OPTIONS` when manifest and network do not fit
 */
export const htdemucsArchitecture: ArchitectureFactory = async (manifest, networks, options) => {
  const ports = findPorts(networks, manifest.stems.length)
  const waves = trackWaves(ports.samples, options.overlap ?? 0.25)
  const spectrum = ports.spectrum && (await waveSpectrum(ports.samples, ports.spectrum))
  const sources = stemSources(manifest, options.stems)
  const pool = new FloatPool()
  const { length } = waves
  const stemCount = manifest.stems.length
  const scratch = new Float32Array(length)
  const outputs = new Map([...sources.keys()].map((stem) => [stem, [0, 1].map(() => new Float32Array(length))]))
  const tensor = (...dims: number[]): Tensor => ({
    dims,
    data: pool.take(dims.reduce((product, dim) => product * dim, 1)),
  })

  return {
    sampleRate: manifest.audio.sampleRate,
    geometry: waves.geometry,
    stems: [...sources.keys()],
    needsTrackStatistics: true,
    batchAxis: freeAxis(ports.wave.input, 0),

    prepare(segment, statistics): NetworkRun[] {
      const wave = tensor(1, 2, length)
      for (const channel of [0, 1]) {
        waves.normalize(segment, channel, statistics, wave.data.subarray(channel * length, (channel + 1) * length))
      }
      const feeds = { [ports.wave.input.name]: wave }
      const fetches = { [ports.wave.output.name]: tensor(1, stemCount, 2, length) }
      if (spectrum && ports.spectrum) {
        const { bins, frameCount, input, output } = ports.spectrum
        feeds[input.name] = tensor(1, 4, bins, frameCount)
        fetches[output.name] = tensor(1, stemCount, 4, bins, frameCount)
        spectrum.forward(wave.data, feeds[input.name]!.data)
      }
      return [{ network: 0, feeds, fetches }]
    },

    collect(segment, runs, statistics) {
      const { feeds, fetches } = runs[0]!
      const stems: Stems = {}
      for (const [stem, planes] of outputs) {
        stems[stem] = planes
        planes.forEach((plane, channel) => {
          const indices = sources.get(stem) ?? []
          const { data } = fetches[ports.wave.output.name]!
          const parts = indices.map((index) =>
            data.subarray((2 * index + channel) * length, (2 * index + channel + 1) * length),
          )
          plane.set(sumOfParts(parts, scratch))
          if (spectrum && ports.spectrum)
            spectrum.addInverse(fetches[ports.spectrum.output.name]!.data, indices, channel, plane)
        })
      }
      for (const { data } of [...Object.values(feeds), ...Object.values(fetches)]) pool.give(data)
      return waves.estimate(segment, stems, statistics, sources)
    },

    close: () => spectrum?.close(),
  }
}

interface SpectrumSizes {
  bins: number
  frameCount: number
}

/** The spectrum of a waveform, as networks with two inputs expect it. */
async function waveSpectrum(samples: number, { bins, frameCount }: SpectrumSizes) {
  const size = 2 * bins
  // This window scales the spectrum by 1 / sqrt(size), and the inverse undoes it.
  const window = periodicHann(size).map((value) => value / Math.sqrt(size))
  const stft = await Stft.create({ size, hop: size / 4, bins, window })
  const layout: SpectrumLayout = { frameStride: 1, binStride: frameCount }
  const padded = new Float32Array(stft.samplesOf(frameCount))
  const restored = new Float32Array(stft.samplesOf(frameCount))
  const sum = new Float32Array(2 * bins * frameCount)
  /** Number of reflected samples before the waveform, where the first frame begins. */
  const lead = (stft.hop * 3) / 2
  const planesOf = (data: Float32Array, channel: number) => {
    const length = bins * frameCount
    const plane = (index: number) => data.subarray(index * length, (index + 1) * length)
    return [plane(2 * channel), plane(2 * channel + 1)] as const
  }
  return {
    forward(wave: Float32Array, spectrum: Float32Array): void {
      for (const channel of [0, 1]) {
        const plane = wave.subarray(channel * samples, (channel + 1) * samples)
        const to = stft.samplesOf(frameCount) - lead
        const slice = reflectedSlice({ samples: plane, start: 0 }, -lead, to, samples, padded)
        const [re, im] = planesOf(spectrum, channel)
        stft.forward(slice, frameCount, re, im, layout)
      }
    },

    /** Adds the inverse transform of the sum of the stems with these indices. */
    addInverse(spectra: Float32Array, indices: readonly number[], channel: number, wave: Float32Array): void {
      const stemLength = 4 * bins * frameCount
      const parts = indices.map((index) => {
        const stem = spectra.subarray(index * stemLength, (index + 1) * stemLength)
        return stem.subarray((channel * stemLength) / 2, ((channel + 1) * stemLength) / 2)
      })
      const [re, im] = planesOf(sumOfParts(parts, sum), 0)
      stft.inverse(re, im, frameCount, layout, restored, droppedFrames)
      for (let i = 0; i < wave.length; i++) wave[i]! += restored[i + lead]!
    },

    close: () => stft.close(),
  }
}

interface Port {
  input: TensorInfo
  output: TensorInfo
}

/** Identifies the tensors by their ranks. */
function findPorts(networks: readonly NetworkShape[], stems: number) {
  const { inputs, outputs } = networks[0]!
  const tensorCounts = networks.length === 1 ? [inputs.length, outputs.length].join() : ''
  const wave = findPort(inputs, outputs, 3)
  const samples = wave && axisSizes(wave.input)[2]
  if (
    wave &&
    samples &&
    fits(wave.input, [undefined, 2, samples]) &&
    fits(wave.output, [undefined, stems, 2, samples])
  ) {
    if (tensorCounts === '1,1') return { wave, samples, spectrum: undefined }
    const spectrum = findPort(inputs, outputs, 4)
    const [, , bins, frameCount] = spectrum ? axisSizes(spectrum.input) : []
    const sizesFit = bins !== undefined && frameCount === Math.ceil(samples / (bins / 2))
    if (spectrum && sizesFit && tensorCounts === '2,2') {
      const isSpectrum = fits(spectrum.input, [undefined, 4, bins, frameCount])
      if (isSpectrum && fits(spectrum.output, [undefined, stems, 4, bins, frameCount])) {
        return { wave, samples, spectrum: { ...spectrum, bins, frameCount } }
      }
    }
  }
  throw misfit(
    networks,
    `a waveform [1, 2, samples] of fixed length and stems [1, ${stems}, 2, samples], alone or with the spectrum ` +
      `[1, 4, bins, frames] and the stems' [1, ${stems}, 4, bins, frames]`,
  )
}

/** The input of that rank and the output of the next higher rank, which has the stems as an additional axis. */
function findPort(inputs: readonly TensorInfo[], outputs: readonly TensorInfo[], rank: number): Port | undefined {
  const input = inputs.find(({ shape }) => shape.length === rank)
  const output = outputs.find(({ shape }) => shape.length === rank + 1)
  return input && output && { input, output }
}
