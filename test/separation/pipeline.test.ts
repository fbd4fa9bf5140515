import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { createArchitecture } from '../../src/core/workflows/separation/architectures/create-architecture.js'
import { resolveModel } from '../../src/core/models/registry.js'
import type { Model } from '../../src/core/models/manifest.js'
import type { Network, Tensor } from '../../src/core/models/session/network.js'
import { openSession } from '../../src/core/models/session/session.js'
import { runPipeline, type PipelineOptions } from '../../src/core/workflows/separation/pipeline/pipeline.js'
import { writeModel } from './models.js'
import { maskNetwork } from './onnx-graph.js'
import { joined, maxDifference, noise, sine, streamOf } from './tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const bins = 2049
const stepSamples = 928 * 512

const folder = temporaryFolder()
let identity: Model
let lowPass: Model
beforeAll(async () => {
  identity = await resolveModel(await writeModel(join(folder, 'identity'), maskNetwork()))
  lowPass = await resolveModel(
    await writeModel(
      join(folder, 'low'),
      maskNetwork((bin) => (bin < 512 ? 1 : 0)),
    ),
  )
})

async function run(model: Model, network: Network, channels: Float32Array[], options: Partial<PipelineOptions> = {}) {
  const architecture = await createArchitecture(model.manifest, [network])
  const parts = { vocals: [[], []] as Float32Array[][], accompaniments: [[], []] as Float32Array[][] }
  try {
    const result = await runPipeline([{ stream: streamOf(channels), architecture, networks: [network] }], {
      sink: async (audio) => {
        for (const stem of ['vocals', 'accompaniments'] as const)
          audio[stem]?.forEach((plane, channel) => parts[stem][channel]!.push(plane.slice()))
      },
      ...options,
    })
    return { ...result, vocals: parts.vocals.map(joined), accompaniments: parts.accompaniments.map(joined) }
  } finally {
    architecture.close()
  }
}

/** A network in this thread that computes the test's function. */
function networkOf(compute: (input: Tensor, output: Tensor, turn: number) => void): Network {
  let turn = 0
  return {
    inputs: [{ name: 'powers', type: 'float32', shape: [1, 4, 'frames', bins] }],
    outputs: [{ name: 'masks', type: 'float32', shape: [1, 2, 'frames', bins] }],
    runtime: 'native',
    isOpen: true,
    async run(feeds, fetches) {
      compute(feeds.powers!, fetches.masks!, turn++)
      return { feeds, fetches, runMs: 0 }
    },
    close: () => Promise.resolve(),
  }
}

describe('pipeline with the embedded architecture', () => {
  it.each([
    1,
    2,
    441,
    1024,
    4410,
    4411,
    44_100,
    stepSamples - 1,
    stepSamples,
    stepSamples + 1,
    stepSamples + 4095,
    stepSamples + 4097,
    2 * stepSamples + 33_333,
  ])('returns %i samples of the mixture when the network is the identity', async (sampleCount) => {
    const session = await openSession(identity.path, { threads: 1 })
    const mixture = [noise(sampleCount, 1), noise(sampleCount, 2)]
    const { vocals, accompaniments, sampleCount: done } = await run(identity, session, mixture)
    expect(done).toBe(sampleCount)
    for (const channel of [0, 1]) {
      expect(maxDifference(vocals[channel]!, mixture[channel]!)).toBeLessThan(1e-5)
      expect(maxDifference(accompaniments[channel]!, new Float32Array(sampleCount))).toBeLessThan(1e-5)
    }
    await session.close()
  })

  it('separates low tones from high ones with a known mask', async () => {
    const session = await openSession(lowPass.path, { threads: 1 })
    const sampleCount = stepSamples + 100_000
    const low = sine(sampleCount, 441, 44_100, 0.4)
    const high = sine(sampleCount, 13_230, 44_100, 0.3)
    const mixture = low.map((value, i) => value + high[i]!)
    const { vocals, accompaniments } = await run(lowPass, session, [mixture, mixture])
    // A mirrored tone has a kink at its ends, which has high and low parts.
    const inner = (plane: Float32Array) => plane.subarray(8192, -8192)
    for (const channel of [0, 1]) {
      expect(maxDifference(inner(vocals[channel]!), inner(low))).toBeLessThan(1e-4)
      expect(maxDifference(inner(accompaniments[channel]!), inner(high))).toBeLessThan(1e-4)
    }
    await session.close()
  })

  it('keeps only the input of the network of a segment until the network has run', async () => {
    const session = await openSession(lowPass.path, { threads: 1 })
    const architecture = await createArchitecture(lowPass.manifest, [session])
    const { before, length } = architecture.geometry
    const planes = [5, 6].map((seed) => noise(length, seed).slice())
    const prepare = (index: number) =>
      architecture.prepare({ index, planes, start: index * stepSamples - before, trackSamples: undefined })
    prepare(1)
    const bytesBefore = process.memoryUsage().arrayBuffers
    const runs = [2, 3, 4].flatMap(prepare)
    const tensors = runs.flatMap(({ feeds, fetches }) => [...Object.values(feeds), ...Object.values(fetches)])
    const bytes = tensors.reduce((sum, { data }) => sum + data.byteLength, 0)
    expect(process.memoryUsage().arrayBuffers - bytesBefore).toBeLessThan(bytes + 1e6)
    architecture.close()
    await session.close()
  })

  it('hands the network the powers of the centred STFT, its last frame repeated up to a multiple of 8', async () => {
    const sampleCount = 1400 * 512 + 500
    const mixture = [noise(sampleCount, 3), noise(sampleCount, 4)]
    const seen: { dims: readonly number[]; data: Float32Array }[] = []
    await run(
      identity,
      networkOf((input, output) => {
        seen.push({ dims: input.dims, data: input.data.slice() })
        output.data.fill(1)
      }),
      mixture,
    )
    // Frames 0..943 and 912..1400, of 1401.
    expect(seen.map(({ dims }) => dims[2])).toEqual([944, 496])
    const [first, second] = seen
    const row = (tensor: typeof first, plane: number, frame: number) =>
      tensor!.data.subarray((plane * tensor!.dims[2]! + frame) * bins, (plane * tensor!.dims[2]! + frame + 1) * bins)
    const mean = (tensor: typeof first, frames: number) => {
      let sum = 0
      for (const plane of [0, 1])
        for (let frame = 0; frame < frames; frame++) sum += row(tensor, plane, frame).reduce((a, b) => a + b)
      return sum / (frames * bins)
    }
    // Relative to the level of the segment's mid and side.
    expect(mean(first, 944)).toBeCloseTo(1, 4)
    expect(mean(second, 489)).toBeCloseTo(1, 4)
    for (const plane of [0, 1, 2, 3]) {
      for (const repeated of [489, 492, 495])
        expect(maxDifference(row(second, plane, repeated), row(second, plane, 488))).toBe(0)
    }
    const value = (channel: number, n: number) =>
      mixture[channel]![Math.abs(n) < sampleCount ? Math.abs(n) : 2 * sampleCount - 2 - n]!
    const parts = [
      (n: number) => (value(0, n) + value(1, n)) / 2,
      (n: number) => (value(0, n) - value(1, n)) / 2,
      (n: number) => value(0, n),
      (n: number) => value(1, n),
    ]
    const power = (part: (n: number) => number, centre: number) => {
      let [re, im] = [0, 0]
      for (let n = 0; n < 4096; n++) {
        const windowed = part(centre - 2048 + n) * (0.5 - 0.5 * Math.cos((2 * Math.PI * n) / 4096))
        re += windowed * Math.cos((2 * Math.PI * 5 * n) / 4096)
        im -= windowed * Math.sin((2 * Math.PI * 5 * n) / 4096)
      }
      return re ** 2 + im ** 2
    }
    for (const [tensor, places] of [
      [first, [0, 1, 932]],
      [second, [20, 488]],
    ] as const) {
      const start = tensor === first ? 0 : 912
      const scale = row(tensor, 2, places[0])[5]! / power(parts[2]!, (start + places[0]) * 512)
      for (const frame of places) {
        for (const [plane, part] of parts.entries())
          expect(row(tensor, plane, frame)[5]! / (scale * power(part, (start + frame) * 512))).toBeCloseTo(1, 3)
      }
    }
  })

  it('gives nothing on the other side for a source on one side', async () => {
    const loud = noise(40_000, 7)
    const seen: Float32Array[] = []
    const network = networkOf((input, output) => {
      seen.push(input.data.slice())
      output.data.fill(1)
    })
    await run(identity, network, [loud, new Float32Array(40_000)])
    // The remains of rounding would be 1e-7 of the other, and loud for a network that compresses powers.
    expect(seen[0]!.subarray((3 * seen[0]!.length) / 4).every((power) => power === 0)).toBe(true)
  })

  it('has no step at the joints, even where neighbouring segments disagree', async () => {
    const sampleCount = 3 * stepSamples
    const tone = sine(sampleCount, 100, 44_100, 0.5)
    const { vocals } = await run(
      identity,
      networkOf((_, output, turn) => {
        const gain = turn % 2 === 0 ? 1 : 0.5
        output.data.fill(gain)
      }),
      [tone, tone],
    )
    const slope = (2 * Math.PI * 100 * 0.5) / 44_100
    let steepest = 0
    for (let i = 1; i < sampleCount; i++) steepest = Math.max(steepest, Math.abs(vocals[0]![i]! - vocals[0]![i - 1]!))
    expect(steepest).toBeLessThan(slope * 1.05)
    expect(Math.abs(vocals[0]![stepSamples + 20_000]! - 0.5 * tone[stepSamples + 20_000]!)).toBeLessThan(1e-5)
  })

  it('gives the complement sample for sample', async () => {
    const sampleCount = stepSamples + 12_345
    const mixture = [noise(sampleCount, 5), noise(sampleCount, 6)]
    const { vocals, accompaniments } = await run(
      identity,
      networkOf((_, output) => output.data.fill(0.3)),
      mixture,
    )
    for (const channel of [0, 1]) {
      expect(
        maxDifference(
          accompaniments[channel]!,
          mixture[channel]!.map((value, i) => value - vocals[channel]![i]!),
        ),
      ).toBe(0)
    }
  })

  it('lets at most one network run wait, and passes the same memory on', async () => {
    const buffers = new Set<ArrayBuffer>()
    let running = 0
    let most = 0
    const slow = networkOf((_, output) => output.data.fill(1))
    const network: Network = {
      ...slow,
      async run(feeds, fetches) {
        most = Math.max(most, ++running)
        for (const { data } of [feeds.powers!, fetches.masks!]) buffers.add(data.buffer)
        const result = await slow.run(feeds, fetches)
        await new Promise(setImmediate)
        running--
        return result
      },
    }
    const silence = new Float32Array(5 * stepSamples)
    await run(identity, network, [silence, silence])
    expect(most).toBe(2)
    expect(buffers.size).toBeLessThanOrEqual(6)
  })

  it('stops between two segments when it is cancelled, after the runs in progress', async () => {
    const controller = new AbortController()
    const reason = new Error('cancelled by the test')
    let running = 0
    let turns = 0
    const network = networkOf((_, output) => output.data.fill(1))
    const watched: Network = {
      ...network,
      async run(feeds, fetches) {
        running++
        if (++turns === 2) controller.abort(reason)
        const result = await network.run(feeds, fetches)
        await new Promise(setImmediate)
        running--
        return result
      },
    }
    const silence = new Float32Array(6 * stepSamples)
    await expect(run(identity, watched, [silence, silence], { signal: controller.signal })).rejects.toBe(reason)
    expect(turns).toBeLessThanOrEqual(3)
    expect(running).toBe(0)
  })

  it('passes the failure of a network on, once', async () => {
    const failure = new Error('no memory')
    const network = networkOf(() => {
      throw failure
    })
    const silence = new Float32Array(3 * stepSamples)
    await expect(run(identity, network, [silence, silence])).rejects.toBe(failure)
  })

  it('accepts a model by its manifest and its network, and says what does not fit', async () => {
    const narrow = await resolveModel(await writeModel(join(folder, 'narrow'), maskNetwork(undefined, 1025)))
    const session = await openSession(narrow.path, { threads: 1 })
    await expect(createArchitecture(narrow.manifest, [session])).rejects.toThrow(
      'expected one input [1, 4, frames, 2049] and one output [1, 2, frames, 2049]; found powers float32 [1, 4, ',
    )
    await expect(createArchitecture({ ...narrow.manifest, chunk: { frames: 0 } }, [session])).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
    })
    await session.close()
    await expect(createArchitecture({ ...narrow.manifest, architecture: 'toString' }, [session])).rejects.toThrow(
      'It knows embedded',
    )
  })
})
