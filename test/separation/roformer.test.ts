import { describe, expect, it } from 'vitest'
import { createArchitecture } from '../../src/core/workflows/separation/architectures/create-architecture.js'
import { maskTrack } from '../media/double-reference.js'
import {
  kinkAt,
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

const load = testNetworks()

interface Sizes {
  bins: number
  frameCount: number
  hop: number
}

type Mask = (bin: number) => [number, number]

const shipped: Sizes = { bins: 1025, frameCount: 801, hop: 441 }
const small: Sizes = { bins: 65, frameCount: 121, hop: 28 }
const one: Mask = () => [1, 0]
const known: Mask = (bin) => [0.6 * Math.cos(bin / 9), 0.3 * Math.sin(bin / 4)]

/** A network that gives the same complex mask for any input, in one of the two layouts. */
function roformerNetwork(
  { bins, frameCount }: Sizes,
  mask: Mask,
  layout: 'row' | 'frame',
  outputRank = layout === 'row' ? 5 : 3,
): OnnxGraph {
  const rows = 2 * bins
  const shape = layout === 'row' ? [1, rows, frameCount, 2] : [1, frameCount, 2 * rows]
  const values = Array.from({ length: rows }, (_, row) => mask(row >> 1)).flat()
  const dims = layout === 'row' ? [1, 1, rows, 1, 2] : outputRank === 4 ? [1, 1, 1, 2 * rows] : [1, 1, 2 * rows]
  return {
    inputs: [{ name: 'spectrum', shape }],
    outputs: [{ name: 'mask', shape: outputRank > shape.length ? [1, ...shape] : shape }],
    nodes: [
      { operator: 'Mul', inputs: ['spectrum', 'zero'], outputs: ['nothing'] },
      { operator: 'Add', inputs: ['nothing', 'known'], outputs: ['mask'] },
    ],
    constants: [
      { name: 'zero', dims: [1], values: [0] },
      { name: 'known', dims, values },
    ],
  }
}

async function model(sizes: Sizes, ...network: [Mask, 'row' | 'frame', number?]): Promise<LoadedModel> {
  // Defaults are the sizes of released models.
  const fields = sizes === shipped ? {} : { stft: { hop: sizes.hop } }
  return {
    manifest: manifestOf('roformer', { stems: ['vocals'], ...fields }),
    networks: [await load(roformerNetwork(sizes, ...network))],
  }
}

/** The separation in double precision; the constant component is silent. */
const reference = (plane: Float32Array, { bins, hop }: Sizes, mask: Mask) =>
  maskTrack(plane, 2 * (bins - 1), hop, (bin) => (bin === 0 ? 0 : mask(bin)))

describe('the roformer architecture', () => {
  it.each([
    ['row', 5],
    ['frame', 3],
    ['frame', 4],
  ] as const)(
    'returns the mixture, without its constant component, from an identity mask: layout by %s, rank %i',
    async (layout, rank) => {
      const identity = await model(small, one, layout, rank)
      for (const sampleCount of [1, 4410, 4411, 20_003]) {
        const mixture = stereoNoise(sampleCount)
        const { vocals, accompaniments } = await separateWith(identity, mixture)
        const expected = mixture.map((plane) => reference(plane, small, one))
        expect(worstDifference(vocals, expected)).toBeLessThan(1e-5)
        expect(worstDifference(accompaniments, without(mixture, expected))).toBeLessThan(1e-5)
      }
    },
  )

  it.each(['row', 'frame'] as const)('multiplies by a known complex mask: layout by %s', async (layout) => {
    const mixture = stereoNoise(12_345, 3)
    const { vocals } = await separateWith(await model(small, known, layout), mixture)
    expect(
      worstDifference(
        vocals,
        mixture.map((plane) => reference(plane, small, known)),
      ),
    ).toBeLessThan(1e-5)
  })

  it.each(['row', 'frame'] as const)('returns the known stem at the true shapes: layout by %s', async (layout) => {
    const mixture = stereoMusic(60_001)
    const { vocals } = await separateWith(await model(shipped, known, layout), mixture)
    expect(worstDifference([vocals[1]!], [reference(mixture[1]!, shipped, known)])).toBeLessThan(1e-4)
  })

  it('moves by half a segment and fades over a tenth, without a step where neighbouring segments differ', async () => {
    const { manifest, networks } = await model(small, one, 'row')
    let turn = 0
    const moody = watched(networks[0]!, ({ spectrum }) => {
      const gain = turn++ % 2 === 0 ? 1 : 0.5
      for (let i = 0; i < spectrum!.data.length; i++) spectrum!.data[i]! *= gain
    })
    const tone = Float32Array.from({ length: 16_000 }, (_, i) => 0.5 * Math.sin(i / 10))
    const { vocals } = await separateWith({ manifest, networks: [moody] }, [tone, tone])
    const step = 57 * 28
    const joints = Array.from({ length: 10 }, (_, segment) => (segment + 1) * step)
    expect(turn).toBe(10)
    expect(kinkAt(vocals[0]!.subarray(200, -200), joints)).toBeLessThan(2)
  })

  it('does not fade the ends of a track, and keeps silence silent', async () => {
    const identity = await model(small, one, 'row')
    const tone = Float32Array.from({ length: 9000 }, (_, i) => 0.5 * Math.cos(i / 2))
    const { vocals } = await separateWith(identity, [tone, tone])
    expect(
      worstDifference(
        [vocals[0]!.subarray(0, 100), vocals[0]!.subarray(-100)],
        [tone.subarray(0, 100), tone.subarray(-100)],
      ),
    ).toBeLessThan(0.05)
    const silence = [new Float32Array(7000), new Float32Array(7000)]
    const silent = await separateWith(identity, silence)
    expect(worstDifference(silent.vocals, silence)).toBe(0)
  })

  it('refuses a network whose masks do not match its spectrum', async () => {
    const { manifest } = await model(small, one, 'row')
    const network = await load(roformerNetwork(small, one, 'row'))
    await expect(createArchitecture({ ...manifest, stems: ['vocals', 'other'] }, [network])).rejects.toThrow(
      '2 masks [1, 2, rows, frames, 2]',
    )
  })
})
