import { describe, expect, it } from 'vitest'
import { createArchitecture } from '../../src/core/workflows/separation/architectures/create-architecture.js'
import { fft, hann, inverseStft, masked, reflectPad, stft, type Complex } from '../media/double-reference.js'
import {
  differenceOfQuiet,
  kinkAt,
  loudestOfSilence,
  manifestOf,
  separateWith,
  silenceLike,
  stereoMusic,
  stereoNoise,
  watched,
  without,
  worstDifference,
  type LoadedModel,
} from './architecture-run.js'
import { testNetworks } from './networks.js'
import type { OnnxGraph } from './onnx-graph.js'
import { maxDifference, noise } from './tracks.js'

const load = testNetworks()
const stems = ['drums', 'bass', 'other', 'vocals'] as const

interface Sizes {
  samples: number
  bins: number
}

const shipped: Sizes = { samples: 343_980, bins: 2048 }
const small: Sizes = { samples: 10_000, bins: 128 }

/** Gains of each stem: on the wave, and on each bin of the spectrum. */
interface Gains {
  wave: number[]
  bin?: (stem: number, bin: number) => number
}

const identity: Gains = { wave: [1, 1, 1, 1] }
const known: Gains = { wave: [0.1, 0.2, -0.3, 0.5], bin: (stem, bin) => 0.3 * Math.cos(bin / (5 + stem)) }

const frameCountOf = ({ samples, bins }: Sizes) => Math.ceil(samples / (bins / 2))

function demucsNetwork(sizes: Sizes, { wave, bin }: Gains): OnnxGraph {
  const { samples, bins } = sizes
  const graph: OnnxGraph = {
    inputs: [{ name: 'mix', shape: [1, 2, samples] }],
    outputs: [{ name: 'waves', shape: [1, 4, 'channels', samples] }],
    nodes: [{ operator: 'Mul', inputs: ['mix', 'wave_gains'], outputs: ['waves'] }],
    constants: [{ name: 'wave_gains', dims: [1, 4, 1, 1], values: wave }],
  }
  if (!bin) return graph
  const values = stems.flatMap((_, stem) => Array.from({ length: bins }, (_, each) => bin(stem, each)))
  return {
    inputs: [...graph.inputs, { name: 'spectrum', shape: [1, 4, bins, frameCountOf(sizes)] }],
    outputs: [{ name: 'spectra', shape: [1, 4, 4, bins, frameCountOf(sizes)] }, ...graph.outputs],
    nodes: [...graph.nodes, { operator: 'Mul', inputs: ['spectrum', 'bin_gains'], outputs: ['spectra'] }],
    constants: [...(graph.constants ?? []), { name: 'bin_gains', dims: [1, 4, 1, bins, 1], values }],
  }
}

async function model(sizes: Sizes, gains: Gains): Promise<LoadedModel> {
  return { manifest: manifestOf('htdemucs', { stems }), networks: [await load(demucsNetwork(sizes, gains))] }
}

/** The spectrum of a wave as the network gets it: `_spec` of the reference implementation. */
function waveSpectrum(wave: Float64Array, { samples, bins }: Sizes): Complex[] {
  const hop = bins / 2
  const frameCount = Math.ceil(samples / hop)
  const padded = reflectPad(wave, 1.5 * hop, 1.5 * hop + frameCount * hop - samples)
  const spectrum = stft(reflectPad(padded, 2 * hop, 2 * hop), { size: 4 * hop, hop, window: hann(4 * hop) })
  const scale = 1 / Math.sqrt(4 * hop)
  return spectrum.slice(2, 2 + frameCount).map(({ re, im }) => ({
    re: re.slice(0, bins).map((value) => value * scale),
    im: im.slice(0, bins).map((value) => value * scale),
  }))
}

/** The inverse transform: `_ispec` of the reference implementation. */
function spectrumWave(spectrum: Complex[], { samples, bins }: Sizes): Float64Array {
  const hop = bins / 2
  const scale = Math.sqrt(4 * hop)
  const silent = () => ({ re: new Float64Array(bins + 1), im: new Float64Array(bins + 1) })
  const whole = spectrum.map(({ re, im }) => {
    const frame = silent()
    frame.re.set(re.map((value) => value * scale))
    frame.im.set(im.map((value) => value * scale))
    return frame
  })
  const padded = inverseStft([silent(), silent(), ...whole, silent(), silent()], {
    size: 4 * hop,
    hop,
    window: hann(4 * hop),
  })
  return padded.subarray(2 * hop + 1.5 * hop, 2 * hop + 1.5 * hop + samples)
}

/** The whole path of one channel in double precision: normalize, cut, separate, weigh with a triangle, join. */
function separateChannel(
  mixture: Float32Array[],
  channel: number,
  stem: number,
  sizes: Sizes,
  { wave, bin }: Gains,
): Float64Array {
  const { samples } = sizes
  const { length } = mixture[0]!
  const mono = Float64Array.from(mixture[0]!, (value, i) => (value + mixture[1]![i]!) / 2)
  const mean = mono.reduce((sum, value) => sum + value, 0) / length
  const deviation = length > 1 ? Math.sqrt(mono.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (length - 1)) : 0
  const scale = deviation + 1e-8
  const normal = Float64Array.from(mixture[channel]!, (value) => (value - mean) / scale)
  const sum = new Float64Array(length)
  const weights = new Float64Array(length)
  for (let offset = 0; offset < length; offset += Math.floor(0.75 * samples)) {
    const count = Math.min(samples, length - offset)
    const from = offset - Math.floor((samples - count) / 2)
    const cut = Float64Array.from({ length: samples }, (_, i) => normal[from + i] ?? 0)
    const estimate = cut.map((value) => value * wave[stem]!)
    if (bin) {
      const spectrum = waveSpectrum(cut, sizes).map((frame) => masked(frame, (each) => bin(stem, each)))
      spectrumWave(spectrum, sizes).forEach((value, i) => (estimate[i]! += value))
    }
    for (let i = 0; i < count; i++) {
      const weight = Math.min(i + 1, samples - i) / (samples / 2)
      sum[offset + i]! += weight * estimate[offset - from + i]!
      weights[offset + i]! += weight
    }
  }
  return sum.map((value, i) => (value / weights[i]!) * scale + mean)
}

describe('the htdemucs architecture', () => {
  it.each([1, 2, 4410, 4411, 9999, 10_000, 10_001, 17_501, 60_001])(
    'returns %i samples of the mixture from an identity network of one input',
    async (sampleCount) => {
      const mixture = stereoNoise(sampleCount)
      const offset = mixture.map((plane) => plane.map((value) => value + 0.1))
      const { vocals, accompaniments } = await separateWith(await model(small, identity), offset)
      expect(worstDifference(vocals, offset)).toBeLessThan(1e-5)
      expect(worstDifference(accompaniments, silenceLike(mixture))).toBeLessThan(1e-5)
    },
  )

  it.each([1, 4410, 17_503])(
    'returns the known stems of %i samples from a network of two inputs',
    async (sampleCount) => {
      const mixture = stereoNoise(sampleCount, 5)
      const found = await separateWith(await model(small, known), mixture, { outputs: [...stems] })
      for (const [index, stem] of stems.entries()) {
        const expected = [0, 1].map((channel) => separateChannel(mixture, channel, index, small, known))
        expect(worstDifference(found[stem], expected)).toBeLessThan(1e-5)
      }
    },
  )

  it('returns the known stem at the true shapes, of two segments', async () => {
    const mixture = stereoMusic(350_000)
    const { vocals } = await separateWith(await model(shipped, known), mixture)
    expect(worstDifference([vocals[1]!], [separateChannel(mixture, 1, 3, shipped, known)])).toBeLessThan(1e-4)
  })

  it('hands the network the spectrum of the reference implementation', async () => {
    const { manifest, networks } = await model(small, known)
    const mixture = stereoNoise(small.samples, 7)
    let wave = new Float32Array(0)
    let spectrum = new Float32Array(0)
    const seen = watched(networks[0]!, (feeds) => {
      wave = feeds.mix!.data.slice()
      spectrum = feeds.spectrum!.data.slice()
    })
    await separateWith({ manifest, networks: [seen] }, mixture)
    const expected = waveSpectrum(Float64Array.from(wave.subarray(small.samples)), small)
    const frameCount = frameCountOf(small)
    const plane = (index: number) =>
      spectrum.subarray(index * small.bins * frameCount, (index + 1) * small.bins * frameCount)
    for (const frame of [0, 1, 70, frameCount - 2, frameCount - 1]) {
      for (let bin = 0; bin < small.bins; bin++) {
        expect(Math.abs(plane(2)[bin * frameCount + frame]! - expected[frame]!.re[bin]!)).toBeLessThan(1e-4)
        expect(Math.abs(plane(3)[bin * frameCount + frame]! - expected[frame]!.im[bin]!)).toBeLessThan(1e-4)
      }
    }
  })

  it('gives the accompaniments as the sum of the other stems on request, else as the rest without vocals', async () => {
    const mixture = stereoNoise(30_000)
    const demucs = await model(small, known)
    const all = await separateWith(demucs, mixture, { outputs: [...stems] })
    const own = await separateWith(demucs, mixture, { ownAccompaniments: true })
    const rest = await separateWith(demucs, mixture)
    const sum = all.drums.map((plane, channel) =>
      plane.map((value, i) => value + all.bass[channel]![i]! + all.other[channel]![i]!),
    )
    expect(worstDifference(own.accompaniments, sum)).toBeLessThan(1e-5)
    expect(worstDifference(rest.vocals, all.vocals)).toBe(0)
    expect(worstDifference(rest.accompaniments, without(mixture, all.vocals))).toBeLessThan(1e-6)
  })

  it('has no step at the joints, even where neighbouring segments disagree', async () => {
    const { manifest, networks } = await model(small, identity)
    let turn = 0
    const moody = watched(networks[0]!, ({ mix }) => {
      const gain = turn++ % 2 === 0 ? 1 : 0.5
      for (let i = 0; i < mix!.data.length; i++) mix!.data[i]! *= gain
    })
    const tone = Float32Array.from({ length: 50_000 }, (_, i) => 0.5 * Math.sin(i / 40))
    const { vocals } = await separateWith({ manifest, networks: [moody] }, [tone, tone])
    const joints = [1, 2, 3, 4, 5].flatMap((segment) => [segment * 7500, segment * 7500 + 2500])
    expect(turn).toBe(7)
    expect(kinkAt(vocals[0]!, joints)).toBeLessThan(3)
  })

  it('normalizes by the whole track and undoes it: level and offset make no difference', async () => {
    expect(await differenceOfQuiet(await model(small, known), stereoMusic(30_000), 100)).toBeLessThan(1e-5)
  })

  it('keeps silence silent', async () => {
    expect(await loudestOfSilence(await model(small, known), 25_000)).toBe(0)
  })

  it('averages over shifts, which evens out estimates that depend on the position in a segment', async () => {
    const { manifest, networks } = await model(small, identity)
    const ramped = watched(networks[0]!, ({ mix }) => {
      for (let i = 0; i < mix!.data.length; i++) mix!.data[i]! *= (i % small.samples) / small.samples
    })
    const mixture = [0, 1].map(() => noise(100_000, 4))
    const spread = (gains: Float32Array) => Math.max(...gains) - Math.min(...gains)
    const gainsOf = ({ vocals }: { vocals: Float32Array[] }) =>
      vocals[0]!
        .map((value, i) => (Math.abs(mixture[0]![i]!) > 0.2 ? value / mixture[0]![i]! : 0.5))
        .slice(20_000, 80_000)
    const one = gainsOf(await separateWith({ manifest, networks: [ramped] }, mixture))
    const eight = gainsOf(await separateWith({ manifest, networks: [ramped] }, mixture, { shifts: 8 }))
    expect(spread(one)).toBeGreaterThan(0.5)
    expect(spread(eight)).toBeLessThan(0.35)
  })

  it('refuses a network whose tensors do not fit together', async () => {
    const { manifest, networks } = await model(small, known)
    await expect(createArchitecture({ ...manifest, stems: ['vocals', 'other'] }, networks)).rejects.toThrow(
      'stems [1, 2, 2, samples]',
    )
    const graph = demucsNetwork(small, known)
    graph.inputs[1]!.shape = [1, 4, small.bins, 10]
    graph.outputs[0]!.shape = [1, 4, 4, small.bins, 10]
    await expect(createArchitecture(manifest, [await load(graph)])).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
  })

  it('is measured against a transform that is its own inverse', () => {
    const input = { re: Float64Array.from(noise(960)), im: Float64Array.from(noise(960, 2)) }
    const back = fft(fft(input), 1)
    expect(
      maxDifference(
        Float32Array.from(back.re, (value) => value / 960),
        noise(960),
      ),
    ).toBeLessThan(1e-7)
  })
})
