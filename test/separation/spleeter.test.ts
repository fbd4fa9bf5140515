import { describe, expect, it } from 'vitest'
import { createArchitecture } from '../../src/core/workflows/separation/architectures/create-architecture.js'
import { hann, inverseStft, masked, stft } from '../media/double-reference.js'
import {
  kinkAt,
  loudestOfSilence,
  manifestOf,
  separateWith,
  silenceLike,
  stereoNoise,
  watched,
  worstDifference,
  type LoadedModel,
} from './architecture-run.js'
import { testNetworks } from './networks.js'
import type { OnnxGraph } from './onnx-graph.js'
import { maxDifference } from './tracks.js'

const load = testNetworks()

interface Sizes {
  nFft: number
  hop: number
  frameCount: number
  bands: number
}

const shipped: Sizes = { nFft: 4096, hop: 1024, frameCount: 512, bands: 1024 }
const small: Sizes = { nFft: 256, hop: 64, frameCount: 64, bands: 64 }

type Gain = (band: number) => number

function spleeterNetwork({ frameCount, bands }: Sizes, gain: Gain): OnnxGraph {
  const shape = [2, 'splits', frameCount, bands]
  return {
    inputs: [{ name: 'x', shape }],
    outputs: [{ name: 'y', shape }],
    nodes: [{ operator: 'Mul', inputs: ['x', 'gain'], outputs: ['y'] }],
    constants: [
      { name: 'gain', dims: [1, 1, 1, bands], values: Array.from({ length: bands }, (_, band) => gain(band)) },
    ],
  }
}

async function model(sizes: Sizes, ...gains: Gain[]): Promise<LoadedModel> {
  const { nFft, hop } = sizes
  const networks = []
  for (const gain of gains) networks.push(await load(spleeterNetwork(sizes, gain)))
  // Defaults are the sizes of released models.
  return { manifest: manifestOf('spleeter', sizes === shipped ? {} : { stft: { nFft, hop } }), networks }
}

/** The first magnitude's share of the sum of squares; above the networks' bands, the mean of the top ten. */
function ratioMask({ bands }: Sizes, vocals: Gain, others: Gain): Gain {
  const share = (band: number) => vocals(band) ** 2 / (vocals(band) ** 2 + others(band) ** 2)
  const top = Array.from({ length: 10 }, (_, i) => share(bands - 1 - i)).reduce((sum, value) => sum + value, 0) / 10
  return (bin) => (bin < bands ? share(bin) : top)
}

/** Frames from the very start, with silence of `n_fft - hop` before the track and of a frame after it. */
function reference(plane: Float32Array, { nFft, hop }: Sizes, gain: Gain): Float64Array {
  const lead = nFft - hop
  const padded = new Float64Array(lead + Math.ceil((plane.length + nFft) / hop) * hop)
  padded.set(plane, lead)
  const options = { size: nFft, hop, window: hann(nFft) }
  const whole = inverseStft(
    stft(padded, options).map((frame) => masked(frame, gain)),
    options,
  )
  return whole.slice(lead, lead + plane.length)
}

const all: Gain = () => 1
const none: Gain = () => 0
const some: Gain = (band) => 0.2 + Math.cos(band / 11) ** 2
const others: Gain = (band) => 0.3 + Math.sin(band / 17) ** 2

describe('the spleeter architecture', () => {
  it.each([1, 4410, 4411, 20_003])(
    'returns %i samples of the mixture when one network keeps everything and the other one nothing',
    async (sampleCount) => {
      const mixture = stereoNoise(sampleCount)
      const { vocals, accompaniments } = await separateWith(await model(small, all, none), mixture)
      expect(worstDifference(vocals, mixture)).toBeLessThan(1e-5)
      expect(worstDifference(accompaniments, silenceLike(mixture))).toBeLessThan(1e-5)
      const { accompaniments: kept } = await separateWith(await model(small, none, all), mixture)
      expect(worstDifference(kept, mixture)).toBeLessThan(1e-5)
    },
  )

  it.each([4411, 15_001])('returns the known stems of %i samples', async (sampleCount) => {
    const mixture = stereoNoise(sampleCount, 3)
    const separated = await separateWith(await model(small, some, others), mixture)
    expect(
      worstDifference(
        separated.vocals,
        mixture.map((plane) => reference(plane, small, ratioMask(small, some, others))),
      ),
    ).toBeLessThan(1e-5)
    const own = await separateWith(await model(small, some, others), mixture, { ownAccompaniments: true })
    expect(worstDifference(own.accompaniments, separated.accompaniments)).toBeLessThan(1e-5)
  })

  it('returns the known stem at the true shapes, and what lies above the 11 kHz limit of the networks', async () => {
    const mixture = stereoNoise(60_001, 5)
    const { vocals } = await separateWith(await model(shipped, some, others), mixture)
    const mask = ratioMask(shipped, some, others)
    expect(worstDifference([vocals[1]!], [reference(mixture[1]!, shipped, mask)])).toBeLessThan(1e-4)
    expect(
      maxDifference(
        vocals[1]!,
        Float32Array.from(reference(mixture[1]!, shipped, (bin) => (bin < 1024 ? mask(bin) : 0))),
      ),
    ).toBeGreaterThan(0.1)
  })

  it('does not fade the ends of a track', async () => {
    const tone = Float32Array.from({ length: 12_000 }, (_, i) => 0.5 * Math.cos(i / 7))
    const { vocals } = await separateWith(await model(small, all, none), [tone, tone])
    expect(vocals[0]![0]).toBeCloseTo(tone[0]!, 4)
    expect(vocals[0]![11_999]).toBeCloseTo(tone[11_999]!, 4)
  })

  it('has no step at the joints, even where neighbouring segments disagree', async () => {
    const { manifest, networks } = await model(small, all, all)
    let turn = 0
    // The second network gets silence in every other segment, so the first one gets the whole mixture.
    const moody = watched(networks[1]!, ({ x }) => turn++ % 2 === 0 && x!.data.fill(0))
    const tone = Float32Array.from({ length: 16_000 }, (_, i) => 0.5 * Math.sin(i / 10))
    const { vocals } = await separateWith({ manifest, networks: [networks[0]!, moody] }, [tone, tone])
    const step = 44 * 64
    expect(
      kinkAt(
        vocals[0]!.subarray(300, -300),
        Array.from({ length: 6 }, (_, segment) => (segment + 1) * step),
      ),
    ).toBeLessThan(2)
  })

  it('keeps silence silent', async () => {
    expect(await loudestOfSilence(await model(small, some, others), 9000)).toBe(0)
  })

  it('sends several segments through both networks in one run, as splits', async () => {
    const { manifest, networks } = await model(small, some, others)
    const mixture = stereoNoise(20_000)
    const shapes: (readonly number[])[] = []
    const seen = networks.map((network) => watched(network, ({ x }) => shapes.push(x!.dims)))
    const batched = await separateWith({ manifest, networks: seen }, mixture, { batch: 3 })
    const single = await separateWith({ manifest, networks }, mixture)
    expect(shapes[0]).toEqual([2, 3, 64, 64])
    expect(worstDifference(batched.vocals, single.vocals)).toBeLessThan(1e-6)
  })

  it('requires a network for each stem', async () => {
    const { manifest, networks } = await model(small, all)
    await expect(createArchitecture(manifest, networks)).rejects.toThrow('2 networks, one for each stem')
  })
})
