import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { AudioBlock } from '../../src/core/media/dsp/audio-stream.js'
import { createArchitecture } from '../../src/core/workflows/separation/architectures/create-architecture.js'
import type { Manifest } from '../../src/core/models/manifest.js'
import { runPipeline, type PipelineMember } from '../../src/core/workflows/separation/pipeline/pipeline.js'
import { separate } from '../../src/core/workflows/separation/separate.js'
import {
  manifestOf,
  separateWith,
  stereoMusic,
  stereoNoise,
  without,
  worstDifference,
  type LoadedModel,
} from './architecture-run.js'
import { shares, writeModelFolder } from './model-folder.js'
import { testNetworks } from './networks.js'
import type { OnnxGraph } from './onnx-graph.js'
import { readAudio, writeWav } from './tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const load = testNetworks()

/** A model of another architecture that also gives a fixed share of the mixture. */
const spectrum = (gain: number): OnnxGraph => ({
  inputs: [{ name: 'input', shape: ['batch', 4, 129, 40] }],
  outputs: [{ name: 'output', shape: ['batch', 4, 129, 40] }],
  nodes: [{ operator: 'Mul', inputs: ['input', 'gain'], outputs: ['output'] }],
  constants: [{ name: 'gain', dims: [1], values: [gain] }],
})

const fourStems = ['drums', 'bass', 'other', 'vocals']
const demucsManifest = manifestOf('htdemucs', { stems: fourStems })
const instrumentalManifest = manifestOf('mdx', { stft: { nFft: 256, hop: 64 }, primary: 'instrumental' })

const demucs = async (gains: number[], samples = 7000): Promise<LoadedModel> => ({
  manifest: demucsManifest,
  networks: [await load(shares(gains, { samples }))],
})
const instrumental = async (gain: number): Promise<LoadedModel> => ({
  manifest: instrumentalManifest,
  networks: [await load(spectrum(gain))],
})

const scaledBy = (planes: Float32Array[], gain: number) => planes.map((plane) => plane.map((value) => gain * value))
/** A tone above the muted lowest bins, in which the two architectures would differ. */
const tone = (sampleCount: number) =>
  [0.5, 0.4].map((level) => Float32Array.from({ length: sampleCount }, (_, i) => level * Math.sin(0.9 * i)))
const inner = (planes: Float32Array[]) => planes.map((plane) => plane.subarray(500, -500))

describe('an ensemble', () => {
  it('averages the vocals of its models by weight, and the accompaniments are the rest', async () => {
    const mixture = tone(30_011)
    const models = [await demucs([0, 0, 0, 0.8]), await demucs([0, 0, 0, 0.2], 5000), await instrumental(0.7)]
    const { vocals, accompaniments } = await separateWith(models, mixture, { weights: [3, 1, 1] })
    // The instrumental model's vocals are 1 - 0.7.
    const expected = (3 * 0.8 + 0.2 + 0.3) / 5
    expect(worstDifference(inner(vocals), inner(scaledBy(mixture, expected)))).toBeLessThan(1e-3)
    expect(worstDifference(accompaniments, without(mixture, vocals))).toBe(0)
  })

  it('averages every stem that its models have in common', async () => {
    const mixture = stereoMusic(20_001)
    const models = [await demucs([0.1, 0.2, 0.3, 0.4]), await demucs([0.3, 0.2, 0.1, 0], 4444)]
    const outputs = ['drums', 'bass', 'other', 'vocals', 'accompaniments'] as const
    const found = await separateWith(models, mixture, { outputs: [...outputs] })
    for (const [stem, gain] of [
      ['drums', 0.2],
      ['bass', 0.2],
      ['other', 0.2],
      ['vocals', 0.2],
      ['accompaniments', 0.8],
    ] as const) {
      expect(worstDifference(found[stem], scaledBy(mixture, gain))).toBeLessThan(1e-3)
    }
  })

  it.each([1, 441, 22_050, 40_001])('averages over shifts without losing any of %i samples', async (sampleCount) => {
    const mixture = stereoNoise(sampleCount)
    const { vocals, accompaniments } = await separateWith(await demucs([0, 0, 0, 1]), mixture, { shifts: 3 })
    expect(worstDifference(vocals, mixture)).toBeLessThan(1e-5)
    expect(vocals[0]).toHaveLength(sampleCount)
    expect(accompaniments[0]).toHaveLength(sampleCount)
  })

  it('never runs more than a few segments ahead of its output, however long the track: no file in memory', async () => {
    const network = await load(shares([0, 0, 0, 1]))
    const other = await load(spectrum(1))
    const lead = async (sampleCount: number) => {
      let read = 0
      let done = 0
      let furthest = 0
      async function* blocks(): AsyncGenerator<AudioBlock> {
        for (let from = 0; from < sampleCount; from += 5000) {
          read = Math.max(read, from + 5000)
          furthest = Math.max(furthest, read - done)
          yield { channels: [new Float32Array(5000), new Float32Array(5000)] }
        }
      }
      const member = async (
        manifest: Manifest,
        networks: PipelineMember['networks'],
        delaySamples: number,
      ): Promise<PipelineMember> => {
        const architecture = await createArchitecture(manifest, networks, { stems: ['vocals'] })
        return {
          architecture,
          networks,
          delaySamples,
          stream: { sampleRate: 44_100, channelCount: 2, sampleCount, format: 'test', blocks: blocks() },
        }
      }
      const members = [
        await member(demucsManifest, [network], 0),
        await member(demucsManifest, [network], 11_025),
        await member(instrumentalManifest, [other], 0),
      ]
      await runPipeline(members, { sink: async (audio) => void (done += audio.vocals?.[0]!.length ?? 0) })
      for (const { architecture } of members) architecture.close()
      expect(done).toBe(sampleCount)
      return furthest
    }
    const short = await lead(200_000)
    expect(await lead(800_000)).toBe(short)
    expect(short).toBeLessThan(60_000)
  })
})

describe('separate with other architectures', () => {
  const folder = temporaryFolder()
  const own = (name: string) => join(folder, name)
  beforeAll(async () => {
    await writeModelFolder(own('demucs'), demucsManifest, shares([0.1, 0.2, 0.3, 0.4]))
    await writeModelFolder(own('half'), demucsManifest, shares([0, 0, 0, 0.5]))
    await writeModelFolder(own('instrumental'), instrumentalManifest, spectrum(0.9))
    await writeWav(own('song.wav'), stereoMusic(50_001), 44_100)
  })

  it('writes the four stems of a model that has them, from a scratch file that is gone afterwards', async () => {
    const outputs = {
      drums: own('drums.wav'),
      bass: own('bass.wav'),
      other: own('other.wav'),
      vocals: own('vocals.wav'),
    }
    const { models, seconds } = await separate(own('song.wav'), {
      outputs,
      model: own('demucs'),
      format: '32f',
      threads: 1,
    })
    expect(models).toMatchObject([{ name: 'demucs' }])
    expect(seconds).toBe(50_001 / 44_100)
    for (const [stem, gain] of [
      ['drums', 0.1],
      ['bass', 0.2],
      ['other', 0.3],
      ['vocals', 0.4],
    ] as const) {
      const { channels } = await readAudio(outputs[stem])
      expect(worstDifference(channels, scaledBy(stereoMusic(50_001), gain))).toBeLessThan(1e-3)
    }
    expect((await readdir(folder)).filter((name) => /scratch|part/.test(name))).toEqual([])
  })

  it('runs an ensemble with shifts and names its models', async () => {
    const outputs = { vocals: own('mean.wav'), accompaniments: own('rest.wav') }
    const { models } = await separate(own('song.wav'), {
      outputs,
      model: [
        { model: own('demucs'), weight: 1 },
        { model: own('half'), weight: 3 },
      ],
      shifts: 2,
      batch: 2,
      overlap: 0.5,
      format: '32f',
      threads: 1,
    })
    expect(models.map(({ name }) => name)).toEqual(['demucs', 'half'])
    const mixture = stereoMusic(50_001)
    expect(worstDifference((await readAudio(outputs.vocals)).channels, scaledBy(mixture, 0.475))).toBeLessThan(1e-3)
    expect(worstDifference((await readAudio(outputs.accompaniments)).channels, scaledBy(mixture, 0.525))).toBeLessThan(
      1e-3,
    )
  })

  it.each([
    [{ overlap: 0.95 }, 'overlap is 0.95'],
    [{ shifts: 0 }, 'shifts is 0'],
    [{ batch: 1.5 }, 'batch is 1.5'],
    [{ denoise: true }, 'does not support the option denoise'],
    [{ outputs: {} }, 'outputs is empty'],
    [{ outputs: { piano: 'piano.wav' } }, 'does not produce piano; it produces drums, bass, other, vocals'],
    [
      { model: 'embedded', outputs: { drums: 'drums.wav' } },
      'Model embedded does not produce drums; it produces vocals, accompaniments. Choose other stems or another ' +
        'model, such as scnet,',
    ],
    [{ model: [] }, 'model is an empty list'],
    [{ model: [{ model: 'demucs', weight: -1 }] }, 'The weight of model demucs is -1'],
  ])('refuses %j, saying why', async (wrong, reason) => {
    const options = { outputs: { vocals: own('never.wav') }, model: own('demucs'), ...wrong }
    await expect(separate(own('song.wav'), options)).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringContaining(reason),
    })
    expect((await readdir(folder)).filter((name) => name.startsWith('never'))).toEqual([])
  })

  it('refuses stems that only some models of an ensemble have', async () => {
    const model = [{ model: own('demucs') }, { model: own('instrumental') }]
    await expect(separate(own('song.wav'), { outputs: { drums: own('never.wav') }, model })).rejects.toThrow(
      'instrumental does not produce drums',
    )
  })

  it('leaves no scratch file when it is cancelled or the file is refused', async () => {
    const controller = new AbortController()
    const outputs = { vocals: own('cancelled.wav') }
    const reason = new Error('enough')
    const running = separate(own('song.wav'), {
      outputs,
      model: own('demucs'),
      signal: controller.signal,
      onProgress: () => controller.abort(reason),
    })
    await expect(running).rejects.toBe(reason)
    await expect(separate(own('song.wav'), { outputs, model: own('demucs'), maxSeconds: 1 })).rejects.toMatchObject({
      reason: 'too_long',
    })
    await writeWav(own('empty.wav'), [new Float32Array(0)], 44_100)
    await expect(separate(own('empty.wav'), { outputs, model: own('demucs') })).rejects.toMatchObject({
      reason: 'no_audio',
    })
    expect((await readdir(folder)).filter((name) => name.startsWith('cancelled'))).toEqual([])
  })
})
