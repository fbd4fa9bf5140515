import type { AudioStream } from '../../src/core/media/dsp/audio-stream.js'
import { createArchitecture } from '../../src/core/workflows/separation/architectures/create-architecture.js'
import type { ArchitectureOptions } from '../../src/core/workflows/separation/architectures/architecture.js'
import type { StemName } from '../../src/core/models/stems.js'
import { manifestSchema, type Manifest } from '../../src/core/models/manifest.js'
import type { Network, NetworkResult, Tensor } from '../../src/core/models/session/network.js'
import { runPipeline, targetStems, type PipelineMember } from '../../src/core/workflows/separation/pipeline/pipeline.js'
import type { EnsembleAlgorithm } from '../../src/core/models/ensemble-algorithm.js'
import { trackStatistics } from '../../src/core/workflows/separation/pipeline/track-statistics.js'
import { joined, maxDifference, noise, sine, streamOf } from './tracks.js'

/** A manifest with the common fields and those of an architecture. */
export function manifestOf(architecture: string, fields: Record<string, unknown>): Manifest {
  return manifestSchema.parse({
    name: `test-${architecture}`,
    version: '1',
    architecture,
    file: 'model.onnx',
    bytes: 1,
    sha256: '0'.repeat(64),
    licence: 'MIT',
    stems: ['vocals', 'accompaniments'],
    audio: { sampleRate: 44_100, channels: 2 },
    ...fields,
  })
}

export interface LoadedModel {
  manifest: Manifest
  networks: Network[]
}

export interface RunOptions extends ArchitectureOptions {
  outputs?: StemName[]
  ownAccompaniments?: boolean
  shifts?: number
  batch?: number
  weights?: number[]
  ensemble?: EnsembleAlgorithm
}

/** Runs a model, or an ensemble, over planes in memory. */
export async function separateWith(
  model: LoadedModel | LoadedModel[],
  channels: Float32Array[],
  options: RunOptions = {},
): Promise<Record<StemName, Float32Array[]>> {
  const {
    outputs = ['vocals', 'accompaniments'],
    ownAccompaniments,
    shifts = 1,
    batch,
    weights,
    ensemble,
    ...architectureOptions
  } = options
  const stream = (): AudioStream => streamOf(channels)
  const statistics = await trackStatistics(stream())
  const members: PipelineMember[] = []
  const stems = targetStems(outputs, ownAccompaniments)
  for (const [index, { manifest, networks }] of [model].flat().entries()) {
    for (let shift = 0; shift < shifts; shift++) {
      const architecture = await createArchitecture(manifest, networks, { stems, ...architectureOptions })
      members.push({
        stream: stream(),
        architecture,
        networks,
        statistics,
        batch,
        weight: weights?.[index],
        model: index,
        delaySamples: Math.round((shift * 22_050) / shifts),
      })
    }
  }
  const parts = new Map(outputs.map((stem) => [stem, [[], []] as Float32Array[][]]))
  try {
    await runPipeline(members, {
      outputs,
      ownAccompaniments,
      ensemble,
      sink: async (audio) => {
        for (const [stem, planes] of parts)
          planes.forEach((plane, channel) => plane.push((audio[stem]?.[channel] ?? new Float32Array(0)).slice()))
      },
    })
  } finally {
    for (const { architecture } of members) architecture.close()
  }
  return Object.fromEntries([...parts].map(([stem, planes]) => [stem, planes.map(joined)])) as Record<
    StemName,
    Float32Array[]
  >
}

/** Calls `see` before every run of a network. */
export function watched(network: Network, see: (feeds: Record<string, Tensor>) => void): Network {
  return {
    ...network,
    run(feeds, fetches): Promise<NetworkResult> {
      see(feeds)
      return network.run(feeds, fetches)
    },
  }
}

export function stereoNoise(sampleCount: number, seed = 1): Float32Array[] {
  return [noise(sampleCount, seed), noise(sampleCount, seed + 1)]
}

/** Tones on both sides and a beat, in which a fade, a step or a shift would be visible. */
export function stereoMusic(sampleCount: number): Float32Array[] {
  const hiss = noise(sampleCount, 9)
  return [220, 331].map((hertz) => {
    const low = sine(sampleCount, hertz, 44_100, 0.3)
    const high = sine(sampleCount, 13_000 + hertz, 44_100, 0.1)
    return low.map((value, i) => value + high[i]! + 0.2 * hiss[i]! * Math.exp(-(i % 22_050) / 2000))
  })
}

/** The planes minus the other planes. */
export function without(planes: readonly Float32Array[], others: readonly ArrayLike<number>[]): Float32Array[] {
  return planes.map((plane, channel) => plane.map((value, i) => value - others[channel]![i]!))
}

/** Silence of the same length. */
export function silenceLike(planes: readonly Float32Array[]): Float32Array[] {
  return planes.map(({ length }) => new Float32Array(length))
}

export function worstDifference(found: ArrayLike<number>[], expected: ArrayLike<number>[]): number {
  return Math.max(
    ...found.map((plane, channel) => maxDifference(Float32Array.from(plane), Float32Array.from(expected[channel]!))),
  )
}

/** Largest second difference around the given samples, relative to that of the rest: large where a joint is audible. */
export function kinkAt(plane: Float32Array, positions: number[], reach = 64): number {
  const bend = (i: number) => Math.abs(plane[i - 1]! - 2 * plane[i]! + plane[i + 1]!)
  let [near, elsewhere] = [0, 0]
  for (let i = 1; i < plane.length - 1; i++) {
    if (positions.some((position) => Math.abs(position - i) <= reach)) near = Math.max(near, bend(i))
    else elsewhere = Math.max(elsewhere, bend(i))
  }
  return near / elsewhere
}

/** Difference of a track's vocals when the track is `times` as quiet and its vocals are amplified again. */
export async function differenceOfQuiet(
  model: LoadedModel,
  mixture: readonly Float32Array[],
  times: number,
): Promise<number> {
  const scaled = (planes: readonly Float32Array[], factor: number) =>
    planes.map((plane) => plane.map((value) => value * factor))
  const { vocals } = await separateWith(model, [...mixture])
  const quiet = await separateWith(model, scaled(mixture, 1 / times))
  return worstDifference(scaled(quiet.vocals, times), vocals)
}

/** The largest sample in a model's output for silence. */
export async function loudestOfSilence(model: LoadedModel, sampleCount: number): Promise<number> {
  const silence = [new Float32Array(sampleCount), new Float32Array(sampleCount)]
  const { vocals, accompaniments } = await separateWith(model, silence)
  return worstDifference([...vocals, ...accompaniments], [...silence, ...silence])
}
