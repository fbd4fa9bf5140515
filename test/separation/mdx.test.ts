import { describe, expect, it } from 'vitest'
import { createArchitecture } from '../../src/core/workflows/separation/architectures/create-architecture.js'
import { maskTrack } from '../media/double-reference.js'
import {
  differenceOfQuiet,
  loudestOfSilence,
  manifestOf,
  separateWith,
  stereoMusic,
  stereoNoise,
  watched,
  without,
  worstDifference,
  type LoadedModel,
} from './architecture-run.js'
import { testNetworks } from './networks.js'
import type { OnnxGraph } from './onnx-graph.js'
import { maxDifference } from './tracks.js'

const load = testNetworks()

/** A network of the MDX family with the given size: `output = gain[bin] * input`. */
function mdxNetwork(bins: number, frameCount: number, gain: (bin: number) => number = () => 1): OnnxGraph {
  return {
    inputs: [{ name: 'input', shape: ['batch_size', 4, bins, frameCount] }],
    outputs: [{ name: 'output', shape: ['batch_size', 4, bins, frameCount] }],
    nodes: [{ operator: 'Mul', inputs: ['input', 'gain'], outputs: ['output'] }],
    constants: [{ name: 'gain', dims: [1, 1, bins, 1], values: Array.from({ length: bins }, (_, bin) => gain(bin)) }],
  }
}

interface MdxSizes {
  nFft: number
  bins: number
  frameCount: number
}

const shipped = {
  kimVocal: { nFft: 7680, bins: 3072, frameCount: 256 },
  instHq3: { nFft: 6144, bins: 3072, frameCount: 256 },
} satisfies Record<string, MdxSizes>
const small: MdxSizes = { nFft: 2048, bins: 1025, frameCount: 32 }

async function model(
  { nFft, bins, frameCount }: MdxSizes,
  fields: Record<string, unknown> = {},
  gain?: (bin: number) => number,
): Promise<LoadedModel> {
  const manifest = manifestOf('mdx', { stft: { nFft }, primary: 'vocals', compensation: 1, ...fields })
  return { manifest, networks: [await load(mdxNetwork(bins, frameCount, gain))] }
}

/** The architecture's own effect on the spectrum: the lowest three bins and those above the network's are silent. */
const kept = (bins: number) => (bin: number) => (bin >= 3 && bin < bins ? 1 : 0)

describe('the mdx architecture', () => {
  it.each([1, 4410, 4411, 26_000, 60_001])(
    'returns %i samples of the mixture, without the muted bins, from an identity network',
    async (sampleCount) => {
      const identity = await model(small)
      const mixture = stereoNoise(sampleCount)
      const { vocals, accompaniments } = await separateWith(identity, mixture)
      const expected = mixture.map((plane) => maskTrack(plane, small.nFft, 1024, kept(small.bins)))
      expect(worstDifference(vocals, expected)).toBeLessThan(1e-5)
      for (const channel of [0, 1]) {
        const sum = vocals[channel]!.map((value, i) => value + accompaniments[channel]![i]!)
        expect(maxDifference(sum, mixture[channel]!)).toBeLessThan(1e-6)
      }
    },
  )

  it.each(Object.entries(shipped))('returns a known stem at the true shapes of %s', async (_, sizes) => {
    // Two segments for the first model: the second begins after 4.3 s.
    const sampleCount = sizes.nFft === 7680 ? 262_000 : 100_001
    const gain = (bin: number) => 0.25 + 0.5 * Math.cos(bin / 40) ** 2
    const masking = await model(sizes, {}, gain)
    const mixture = stereoMusic(sampleCount)
    const { vocals } = await separateWith(masking, mixture)
    const expected = maskTrack(mixture[1]!, sizes.nFft, 1024, (bin) => kept(sizes.bins)(bin) * gain(bin))
    expect(worstDifference([vocals[1]!], [expected])).toBeLessThan(1e-4)
  })

  it.each([0, 0.25, 0.5, 0.8])('gives the same with an overlap of %d', async (overlap) => {
    const gain = (bin: number) => 1 / (1 + bin / 100)
    const masking = await model(small, {}, gain)
    const mixture = stereoNoise(90_000, 3)
    const { vocals } = await separateWith(masking, mixture, { overlap })
    const expected = mixture.map((plane) =>
      maskTrack(plane, small.nFft, 1024, (bin) => kept(small.bins)(bin) * gain(bin)),
    )
    expect(worstDifference(vocals, expected)).toBeLessThan(1e-5)
  })

  it('takes the frame length from the manifest: a network of 3072 bins may have 6144 or 7680 points', async () => {
    const network = await load(mdxNetwork(96, 24))
    const mixture = stereoMusic(30_000)
    for (const nFft of [192, 320]) {
      const manifest = manifestOf('mdx', { stft: { nFft, hop: 64 }, primary: 'vocals' })
      const { vocals } = await separateWith({ manifest, networks: [network] }, mixture)
      expect(
        worstDifference(
          vocals,
          mixture.map((plane) => maskTrack(plane, nFft, 64, kept(96))),
        ),
      ).toBeLessThan(1e-5)
    }
    await expect(createArchitecture(manifestOf('mdx', { primary: 'vocals' }), [network])).rejects.toThrow(' stft: ')
  })

  it('gives the vocals of an instrumental-primary model as the rest, not as its output', async () => {
    const low = (bin: number) => (bin < 100 ? 1 : 0)
    const instrumental = await model(small, { primary: 'instrumental', compensation: 1.035 }, low)
    const mixture = stereoMusic(80_000)
    const { vocals, accompaniments } = await separateWith(instrumental, mixture)
    const estimated = mixture.map((plane) => maskTrack(plane, small.nFft, 1024, (bin) => 1.035 * kept(100)(bin)))
    expect(worstDifference(accompaniments, estimated)).toBeLessThan(1e-5)
    expect(worstDifference(vocals, without(mixture, estimated))).toBeLessThan(1e-5)
  })

  it('multiplies the primary stem by the compensation; the other one is the rest', async () => {
    const compensated = await model(small, { compensation: 1.021 })
    const mixture = stereoNoise(50_000)
    const { vocals, accompaniments } = await separateWith(compensated, mixture)
    const expected = mixture.map((plane) => maskTrack(plane, small.nFft, 1024, (bin) => 1.021 * kept(small.bins)(bin)))
    expect(worstDifference(vocals, expected)).toBeLessThan(1e-5)
    expect(worstDifference(accompaniments, without(mixture, expected))).toBeLessThan(1e-5)
  })

  it('denoises by half the difference of two passes, which removes what a network always adds', async () => {
    const { bins, frameCount } = small
    const network = await load({
      inputs: [{ name: 'in', shape: [1, 4, bins, frameCount] }],
      outputs: [{ name: 'out', shape: [1, 4, bins, frameCount] }],
      nodes: [{ operator: 'Add', inputs: ['in', 'hum'], outputs: ['out'] }],
      constants: [{ name: 'hum', dims: [1], values: [50] }],
    })
    const manifest = manifestOf('mdx', { stft: { nFft: small.nFft }, primary: 'vocals' })
    const mixture = stereoNoise(70_000)
    const clean = mixture.map((plane) => maskTrack(plane, small.nFft, 1024, kept(bins)))
    const noisy = await separateWith({ manifest, networks: [network] }, mixture)
    const denoised = await separateWith({ manifest, networks: [network] }, mixture, { denoise: true })
    expect(worstDifference(noisy.vocals, clean)).toBeGreaterThan(0.01)
    expect(worstDifference(denoised.vocals, clean)).toBeLessThan(1e-5)
  })

  it('does not fade the ends of a track: the first and the last samples are those of the mixture', async () => {
    const identity = await model(small)
    const sampleCount = 90_000
    const mixture = [0, 1].map(() => Float32Array.from({ length: sampleCount }, (_, i) => 0.5 * Math.cos(i / 5)))
    const { vocals } = await separateWith(identity, mixture)
    for (const end of [
      (plane: Float32Array) => plane.subarray(0, 3000),
      (plane: Float32Array) => plane.subarray(-3000),
    ]) {
      expect(maxDifference(end(vocals[0]!), end(mixture[0]!))).toBeLessThan(0.02)
    }
  })

  it('is linear: a quiet track is separated like a loud one, without normalization', async () => {
    const masking = await model(small, {}, (bin) => 1 / (1 + bin / 50))
    expect(await differenceOfQuiet(masking, stereoMusic(60_000), 64)).toBeLessThan(1e-5)
  })

  it('keeps silence silent', async () => {
    expect(await loudestOfSilence(await model(small), 40_000)).toBe(0)
  })

  it('sends several segments through the network in one run, with the same result', async () => {
    const { manifest, networks } = await model(small, {}, (bin) => 1 / (1 + bin / 50))
    const mixture = stereoNoise(200_000)
    const sizes: number[] = []
    const seen = [watched(networks[0]!, ({ input }) => sizes.push(input!.dims[0]!))]
    const batched = await separateWith({ manifest, networks: seen }, mixture, { batch: 4, denoise: true })
    const single = await separateWith({ manifest, networks }, mixture, { denoise: true })
    expect(new Set(sizes)).toEqual(new Set([4, sizes.at(-1)]))
    expect(worstDifference(batched.vocals, single.vocals)).toBe(0)
  })

  it('refuses a network of another architecture, an unknown stem, and impossible sizes', async () => {
    const { manifest, networks } = await model(small)
    const wide = await load(mdxNetwork(1026, 32))
    await expect(createArchitecture(manifest, [wide])).rejects.toThrow(
      'at most 1025 bins; found input float32 [batch_size, 4, 1026, 32]',
    )
    await expect(createArchitecture(manifest, networks, { stems: ['drums'] })).rejects.toThrow('does not produce drums')
    await expect(createArchitecture({ ...manifest, stft: { nFft: 2050 } }, networks)).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
    })
    await expect(createArchitecture(manifest, [await load(mdxNetwork(1025, 3))])).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
    })
  })
})
