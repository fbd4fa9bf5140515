import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { createArchitecture } from '../../src/core/workflows/separation/architectures/create-architecture.js'
import type { AudioBlock } from '../../src/core/media/dsp/audio-stream.js'
import { combinedWaves } from '../../src/core/workflows/separation/pipeline/ensemble.js'
import {
  type EnsembleAlgorithm,
  ensembleAlgorithms,
  isSpectral,
  statisticOf,
} from '../../src/core/models/ensemble-algorithm.js'
import type { StemBlock } from '../../src/core/workflows/separation/pipeline/estimation.js'
import { runPipeline, type PipelineMember } from '../../src/core/workflows/separation/pipeline/pipeline.js'
import { combinedSpectra, type SpectralMember } from '../../src/core/workflows/separation/pipeline/spectral-ensemble.js'
import { separate, type SeparationOptions } from '../../src/core/workflows/separation/separate.js'
import { manifestOf, separateWith, stereoMusic, stereoNoise, without, worstDifference } from './architecture-run.js'
import { hann, inverseStft, stft } from '../media/double-reference.js'
import { shares, writeModelFolder } from './model-folder.js'
import { testNetworks } from './networks.js'
import { joined, readAudio, sine, writeWav } from './tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const load = testNetworks()
const fourStems = ['drums', 'bass', 'other', 'vocals']
const demucsManifest = manifestOf('htdemucs', { stems: fourStems })

/** A model whose vocals are the mixture times a gain per channel. */
const gains = (left: number, right: number, samples?: number) =>
  shares([0, 0, 0, 0, 0, 0, left, right], { samples, channels: 2 })

/** An estimate in blocks of the given size, as from a model. */
function member(vocals: Float32Array[], mixture: Float32Array[], step: number): SpectralMember {
  async function* blocks(): AsyncGenerator<StemBlock, void, void> {
    for (let from = 0; from < vocals[0]!.length; from += step) {
      const cut = (planes: Float32Array[]) => planes.map((plane) => plane.slice(from, from + step))
      yield { sampleCount: cut(vocals)[0]!.length, stems: { vocals: cut(vocals) }, mixture: cut(mixture) }
    }
  }
  return { blocks: blocks(), weight: 1, delaySamples: 0 }
}

async function combined(algorithm: EnsembleAlgorithm, members: SpectralMember[]) {
  const statistic = statisticOf(algorithm)
  const blocks = isSpectral(algorithm)
    ? combinedSpectra(members, ['vocals'], { statistic, sampleRate: 44_100 })
    : combinedWaves(members, ['vocals'], statistic)
  const parts: Record<'vocals' | 'mixture', Float32Array[][]> = { vocals: [[], []], mixture: [[], []] }
  for await (const { stems, mixture } of blocks) {
    stems.vocals?.forEach((plane, channel) => parts.vocals[channel]!.push(plane.slice()))
    mixture.forEach((plane, channel) => parts.mixture[channel]!.push(plane.slice()))
  }
  return { vocals: parts.vocals.map(joined), mixture: parts.mixture.map(joined) }
}

/** The formulas in double precision. */
function expected(algorithm: EnsembleAlgorithm, estimates: Float32Array[], weights: number[]): Float64Array {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const statistic = statisticOf(algorithm)
  const real = (values: number[]): number => {
    if (statistic === 'avg') return values.reduce((sum, value, i) => sum + weights[i]! * value, 0) / total
    const sorted = [...values].sort((a, b) => a - b)
    const middle = sorted.length / 2
    return sorted.length % 2 ? sorted[Math.floor(middle)]! : (sorted[middle - 1]! + sorted[middle]!) / 2
  }
  const chosen = (sizes: number[]) => sizes.indexOf(statistic === 'max' ? Math.max(...sizes) : Math.min(...sizes))
  if (!isSpectral(algorithm)) {
    return Float64Array.from(estimates[0]!, (_, n) => {
      const values = estimates.map((wave) => wave[n]!)
      return statistic === 'avg' || statistic === 'median' ? real(values) : values[chosen(values.map(Math.abs))]!
    })
  }
  const settings = { size: 2048, hop: 1024, window: hann(2048) }
  const sampleCount = estimates[0]!.length
  const spectra = estimates.map((wave) => {
    const padded = new Float64Array(Math.ceil(sampleCount / 1024) * 1024 + 2048)
    padded.set(wave, 1024)
    return stft(padded, settings)
  })
  const frames = spectra[0]!.map((frame, t) => {
    const made = { re: new Float64Array(2048), im: new Float64Array(2048) }
    for (let f = 0; f < frame.re.length; f++) {
      const [re, im] = [spectra.map((each) => each[t]!.re[f]!), spectra.map((each) => each[t]!.im[f]!)]
      const index = chosen(re.map((value, k) => Math.hypot(value, im[k]!)))
      const isReal = statistic === 'avg' || statistic === 'median'
      made.re[f] = isReal ? real(re) : re[index]!
      made.im[f] = isReal ? real(im) : im[index]!
    }
    return made
  })
  return inverseStft(frames, settings).subarray(1024, 1024 + sampleCount)
}

describe.each(ensembleAlgorithms)('the ensemble algorithm %s', (algorithm) => {
  const mixture = (sampleCount: number) => stereoNoise(sampleCount, 99)
  const estimates = (count: number, sampleCount: number) =>
    Array.from({ length: count }, (_, k) => stereoNoise(sampleCount, 3 * k + 1))

  it.each([
    [3, 1],
    [3, 1025],
    [4, 34_001],
  ])('follows its formula for %i models and %i samples, in blocks of any size', async (count, sampleCount) => {
    const given = estimates(count, sampleCount)
    const weights = given.map((_, k) => (algorithm.startsWith('avg') ? k + 1 : 1))
    const members = given.map((wave, k) => ({
      ...member(wave, mixture(sampleCount), 3000 + 997 * k),
      weight: weights[k]!,
    }))
    const found = await combined(algorithm, members)
    expect(worstDifference(found.mixture, mixture(sampleCount))).toBe(0)
    const wanted = [0, 1].map((channel) =>
      expected(
        algorithm,
        given.map((planes) => planes[channel]!),
        weights,
      ),
    )
    expect(found.vocals[0]).toHaveLength(sampleCount)
    expect(worstDifference(found.vocals, wanted)).toBeLessThan(2e-6)
  })

  it('does not depend on the order of the models, even if they differ only in sign', async () => {
    const given = estimates(3, 5000)
    given.push(given[0]!.map((plane) => plane.map((value) => -value)))
    const members = () => given.map((wave) => member(wave, mixture(5000), 1000))
    const one = await combined(algorithm, members())
    const other = await combined(algorithm, members().reverse())
    // The last digit of a sum of floats depends on its order.
    expect(worstDifference(one.vocals, other.vocals)).toBeLessThan(algorithm.startsWith('avg') ? 1e-6 : 1e-12)
  })

  it('of equal estimates is that estimate', async () => {
    const [wave] = estimates(1, 40_001)
    const members = [0, 1, 2].map((k) => member(wave!, mixture(40_001), 7000 + k))
    expect(worstDifference((await combined(algorithm, members)).vocals, wave!)).toBeLessThan(1e-6)
  })

  it('keeps vocals + accompaniments = mixture', async () => {
    const song = stereoMusic(30_011)
    const models = []
    for (const [left, right] of [
      [0.9, 0.1],
      [0.2, 0.6],
      [0.5, 0.4],
    ])
      models.push({ manifest: demucsManifest, networks: [await load(gains(left!, right!))] })
    const { vocals, accompaniments } = await separateWith(models, song, { ensemble: algorithm })
    const gain = { avg: [1.6 / 3, 1.1 / 3], median: [0.5, 0.4], min: [0.2, 0.1], max: [0.9, 0.6] }[
      statisticOf(algorithm)
    ]
    const scaled = song.map((plane, channel) => plane.map((value) => value * gain[channel]!))
    expect(worstDifference(vocals, scaled)).toBeLessThan(1e-3)
    const rest = without(song, vocals)
    expect(worstDifference(accompaniments, rest)).toBe(0)
  })

  it('reads no further ahead in a longer track: memory stays flat', async () => {
    const network = await load(gains(0.5, 0.5))
    const other = await load(gains(0.4, 0.6, 5000))
    const lead = async (sampleCount: number) => {
      let [read, done, furthest] = [0, 0, 0]
      async function* blocks(): AsyncGenerator<AudioBlock> {
        for (let from = 0; from < sampleCount; from += 5000) {
          read = Math.max(read, from + 5000)
          furthest = Math.max(furthest, read - done)
          yield { channels: [new Float32Array(5000), new Float32Array(5000)] }
        }
      }
      const members: PipelineMember[] = []
      for (const each of [network, other]) {
        const architecture = await createArchitecture(demucsManifest, [each], { stems: ['vocals'] })
        const stream = { sampleRate: 44_100, channelCount: 2, sampleCount, format: 'test', blocks: blocks() }
        members.push({ architecture, networks: [each], stream })
      }
      await runPipeline(members, {
        ensemble: algorithm,
        sink: async (audio) => void (done += audio.vocals?.[0]!.length ?? 0),
      })
      for (const { architecture } of members) architecture.close()
      expect(done).toBe(sampleCount)
      return furthest
    }
    const short = await lead(150_000)
    expect(await lead(300_000)).toBeLessThan(short + 5000)
    expect(short).toBeLessThan(100_000)
  })
})

describe('an ensemble with bands', () => {
  it('takes low frequencies from one model and high ones from another', async () => {
    const [low, high] = [200, 9000].map((hertz) => sine(40_000, hertz, 44_100))
    const both = low!.map((value, i) => value + high![i]!)
    const silence = new Float32Array(40_000)
    const given = [
      { ...member([both, both], [both, both], 6000), band: { from: 0, to: 4000 } },
      { ...member([silence, both], [both, both], 7000), band: { from: 4000, to: Infinity } },
    ]
    const { vocals } = await combined('avg_fft', given)
    const inner = (plane: Float32Array) => plane.subarray(3000, -3000)
    expect(worstDifference([inner(vocals[0]!)], [inner(low!)])).toBeLessThan(1e-3)
    expect(worstDifference([inner(vocals[1]!)], [inner(both)])).toBeLessThan(1e-3)
  })
})

describe('separate with an ensemble algorithm', () => {
  const folder = temporaryFolder()
  const own = (name: string) => join(folder, name)
  beforeAll(async () => {
    for (const [name, left, right] of [
      ['one', 0.9, 0.1],
      ['two', 0.2, 0.6],
      ['three', 0.5, 0.4],
    ] as const)
      await writeModelFolder(own(name), demucsManifest, gains(left, right))
    await writeWav(own('song.wav'), stereoMusic(50_001), 44_100)
  })

  async function run(name: string, options: Partial<SeparationOptions>) {
    const outputs = { vocals: own(`${name}-vocals.wav`), accompaniments: own(`${name}-rest.wav`) }
    await separate(own('song.wav'), { outputs, format: '32f', threads: 1, ...options })
    return Promise.all(Object.values(outputs).map((path) => readFile(path)))
  }

  it('gives the same bytes as the model alone if there is only one', async () => {
    const alone = await run('alone', { model: own('one') })
    for (const ensemble of ensembleAlgorithms) {
      const made = await run(ensemble, { model: [{ model: own('one') }], ensemble })
      expect(
        made.map((bytes, i) => bytes.equals(alone[i]!)),
        ensemble,
      ).toEqual([true, true])
    }
  })

  it('averages the shifted passes of each model before it combines the models', async () => {
    const model = ['one', 'two', 'three'].map((name) => ({ model: own(name) }))
    await run('shifted', { model, ensemble: 'median_wave', shifts: 2 })
    const { channels } = await readAudio(own('shifted-vocals.wav'))
    const wanted = stereoMusic(50_001).map((plane, channel) => plane.map((value) => value * [0.5, 0.4][channel]!))
    expect(worstDifference(channels, wanted)).toBeLessThan(1e-3)
  })

  it.each<[Partial<SeparationOptions>, string]>([
    [
      { ensemble: 'max_fft', model: [{ model: 'a' }, { model: 'b', weight: 2 }] },
      'b has a weight, which max_fft does not use',
    ],
    [
      { ensemble: 'avg_wave', model: [{ model: 'a', toHertz: 500 }, { model: 'b' }] },
      'a band, which avg_wave cannot do',
    ],
    [
      {
        ensemble: 'avg_fft',
        model: [
          { model: 'a', toHertz: 500 },
          { model: 'b', fromHertz: 600 },
        ],
      },
      'no model of the ensemble takes part',
    ],
    [{ ensemble: 'avg_fft', model: [{ model: 'a', toHertz: 500 }] }, 'no model of the ensemble takes part'],
    [{ ensemble: 'avg_fft', model: [{ model: 'a', fromHertz: 9, toHertz: 5 }, { model: 'b' }] }, '9 to 5 Hz'],
  ])('refuses %j', async (options, reason) => {
    await expect(run('never', options)).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringContaining(reason),
    })
  })
})
