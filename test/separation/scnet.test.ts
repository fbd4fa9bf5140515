import { describe, expect, it } from 'vitest'
import { createArchitecture } from '../../src/core/workflows/separation/architectures/create-architecture.js'
import { inverseStft, masked, reflectPad, stft } from '../media/double-reference.js'
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
  worstDifference,
  type LoadedModel,
} from './architecture-run.js'
import { testNetworks } from './networks.js'
import type { OnnxGraph } from './onnx-graph.js'

const load = testNetworks()
const stems = ['drums', 'bass', 'other', 'vocals'] as const

interface Sizes {
  bins: number
  frameCount: number
  hop: number
  /** Samples of a segment: fewer than its frames could hold. */
  samples: number
}

const shipped: Sizes = { bins: 2049, frameCount: 476, hop: 1024, samples: 485_100 }
const small: Sizes = { bins: 129, frameCount: 80, hop: 64, samples: 5000 }

type Gain = (stem: number, bin: number) => number
const identity: Gain = () => 1
const known: Gain = (stem, bin) => 0.4 * Math.cos(bin / (7 + stem)) ** 2

function scnetNetwork({ bins, frameCount }: Sizes, gain: Gain): OnnxGraph {
  return {
    inputs: [{ name: 'spectrum', shape: [1, 4, bins, frameCount] }],
    outputs: [{ name: 'stems', shape: [1, 16, bins, frameCount] }],
    nodes: [
      ...stems.map((stem) => ({ operator: 'Mul', inputs: ['spectrum', `gain_${stem}`], outputs: [stem] })),
      { operator: 'Concat', inputs: [...stems], outputs: ['stems'], attributes: { axis: 1 } },
    ],
    constants: stems.map((stem, index) => ({
      name: `gain_${stem}`,
      dims: [1, 1, bins, 1],
      values: Array.from({ length: bins }, (_, bin) => gain(index, bin)),
    })),
  }
}

async function model(sizes: Sizes, gain: Gain): Promise<LoadedModel> {
  // Defaults are the sizes of released models.
  const fields = sizes === shipped ? {} : { stft: { hop: sizes.hop }, segmentSamples: sizes.samples }
  return { manifest: manifestOf('scnet', { stems, ...fields }), networks: [await load(scnetNetwork(sizes, gain))] }
}

/** One segment in double precision: silence after it, centred STFT with a rectangular window, gains, the inverse. */
function separateSegment(
  wave: Float64Array,
  { bins, frameCount, hop, samples }: Sizes,
  gain: (bin: number) => number,
): Float64Array {
  const size = 2 * (bins - 1)
  const reference = { size, hop, window: new Float64Array(size).fill(1) }
  const padded = new Float64Array((frameCount - 1) * hop)
  padded.set(wave)
  const spectrum = stft(reflectPad(padded, size / 2, size / 2), reference)
  return inverseStft(
    spectrum.map((frame) => masked(frame, gain)),
    reference,
  ).subarray(size / 2, size / 2 + samples)
}

/** One channel: normalized by the track, cut into segments that overlap by half, joined by linear fades. */
function separateChannel(
  mixture: Float32Array[],
  channel: number,
  sizes: Sizes,
  gain: (bin: number) => number,
): Float64Array {
  const { samples } = sizes
  const { length } = mixture[0]!
  const mono = Float64Array.from(mixture[0]!, (value, i) => (value + mixture[1]![i]!) / 2)
  const mean = mono.reduce((sum, value) => sum + value, 0) / length
  const deviation = length > 1 ? Math.sqrt(mono.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (length - 1)) : 0
  const normal = Float64Array.from(mixture[channel]!, (value) => (value - mean) / (deviation + 1e-8))
  const sum = new Float64Array(length)
  const weights = new Float64Array(length)
  const step = Math.floor(samples / 2)
  for (let offset = 0; offset === 0 || offset + samples - step < length; offset += step) {
    const count = Math.min(samples, length - offset)
    const from = offset - Math.floor((samples - count) / 2)
    const cut = Float64Array.from({ length: samples }, (_, i) => normal[from + i] ?? 0)
    const estimate = separateSegment(cut, sizes, gain)
    for (let i = 0; i < count; i++) {
      const rising = offset === 0 ? 1 : (i + 1) / (step + 1)
      const falling = offset + samples >= length ? 1 : (samples - i) / (step + 1)
      const weight = Math.min(1, rising, falling)
      sum[offset + i]! += weight * estimate[offset - from + i]!
      weights[offset + i]! += weight
    }
  }
  return sum.map((value, i) => (value / weights[i]!) * (deviation + 1e-8) + mean)
}

describe('the scnet architecture', () => {
  it.each([1, 4410, 4411, 5000, 5001, 7501, 31_313])(
    'returns %i samples of the mixture from an identity network',
    async (sampleCount) => {
      const mixture = stereoNoise(sampleCount)
      const { vocals, accompaniments } = await separateWith(await model(small, identity), mixture)
      expect(worstDifference(vocals, mixture)).toBeLessThan(1e-5)
      expect(worstDifference(accompaniments, silenceLike(mixture))).toBeLessThan(1e-5)
    },
  )

  it.each([4410, 16_001])('returns the known stems of %i samples', async (sampleCount) => {
    const mixture = stereoNoise(sampleCount, 3)
    const found = await separateWith(await model(small, known), mixture, { outputs: [...stems] })
    for (const [index, stem] of stems.entries()) {
      const expected = [0, 1].map((channel) => separateChannel(mixture, channel, small, (bin) => known(index, bin)))
      expect(worstDifference(found[stem], expected)).toBeLessThan(1e-5)
    }
  })

  it('returns the known stem at the true shapes, where a segment is 485,100 samples', async () => {
    const mixture = stereoMusic(100_001)
    const { vocals } = await separateWith(await model(shipped, known), mixture)
    const expected = separateChannel(mixture, 1, shipped, (bin) => known(3, bin))
    expect(worstDifference([vocals[1]!], [expected])).toBeLessThan(1e-4)
  })

  it.each([0.5, 0.75])(
    'returns the mixture with an overlap of %d: steps of a half to a quarter of a segment',
    async (overlap) => {
      const mixture = stereoNoise(23_456)
      const { vocals } = await separateWith(await model(small, identity), mixture, { overlap })
      expect(worstDifference(vocals, mixture)).toBeLessThan(1e-5)
    },
  )

  it('has no step at the joints, even where neighbouring segments disagree', async () => {
    const { manifest, networks } = await model(small, identity)
    let turn = 0
    const moody = watched(networks[0]!, ({ spectrum }) => {
      const gain = turn++ % 2 === 0 ? 1 : 0.5
      for (let i = 0; i < spectrum!.data.length; i++) spectrum!.data[i]! *= gain
    })
    const tone = Float32Array.from({ length: 20_000 }, (_, i) => 0.5 * Math.sin(i / 20))
    const { vocals } = await separateWith({ manifest, networks: [moody] }, [tone, tone])
    expect(turn).toBe(7)
    expect(kinkAt(vocals[0]!, [2500, 5000, 7500, 10_000, 12_500, 15_000, 17_500])).toBeLessThan(2)
  })

  it('normalizes by the whole track and undoes it', async () => {
    expect(await differenceOfQuiet(await model(small, known), stereoMusic(15_000), 100)).toBeLessThan(1e-5)
  })

  it('keeps silence silent', async () => {
    expect(await loudestOfSilence(await model(small, known), 9000)).toBe(0)
  })

  it('refuses a network that gives another number of stems than its manifest names', async () => {
    const { manifest, networks } = await model(small, known)
    await expect(createArchitecture({ ...manifest, stems: ['vocals', 'other'] }, networks)).rejects.toThrow(
      'one output [1, 8, bins, frames]',
    )
  })
})
