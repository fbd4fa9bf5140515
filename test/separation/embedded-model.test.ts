import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import { resample } from '../../src/core/media/dsp/resample.js'
import { stemComparison } from '../../src/core/workflows/separation/evaluation/scores.js'
import { separate } from '../../src/core/workflows/separation/separate.js'
import { collect, joined, readAudio, streamOf, writeWav } from './tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const demo = fileURLToPath(new URL('../../demo/', import.meta.url))
const instrumental = fileURLToPath(new URL('../../../shared/data/instrumental/', import.meta.url))
const rate = 44_100

interface Song {
  vocals: Float32Array[]
  accompaniments: Float32Array[]
}

const folder = temporaryFolder()
let song: Song
/** Twelve seconds of the song with a voice, for tests independent of length. */
let part: Song
beforeAll(async () => {
  const [vocals, accompaniments] = await Promise.all(
    ['vocals', 'accompaniments'].map(async (stem) => (await readAudio(join(demo, `${stem}.ogg`))).channels),
  )
  const sampleCount = Math.min(vocals![0]!.length, accompaniments![0]!.length)
  song = excerpt({ vocals: vocals!, accompaniments: accompaniments! }, 0, sampleCount)
  part = excerpt(song, 8 * rate, 20 * rate)
})

describe('the model in the package, on the demo song', () => {
  let plain: Float32Array[]
  beforeAll(async () => {
    plain = await vocalsOf(mixture(song))
  })

  it('extracts most of a voice', () => {
    expect(score(plain, song.vocals)).toBeGreaterThan(10)
  })

  it.each([256, 512, 2048])('gives nearly the same when the song begins %i samples later', async (shift) => {
    const moved = await vocalsOf(mixture(song).map((plane) => joined([new Float32Array(shift), plane])))
    const back = moved.map((plane) => plane.subarray(shift))
    expect(score(back, plain)).toBeGreaterThan(40)
  })
})

describe('the model in the package, on a part of the demo song', () => {
  let plain: Float32Array[]
  beforeAll(async () => {
    plain = await vocalsOf(mixture(part))
  })

  it('does as well in mono', async () => {
    const mono = (planes: Float32Array[]) => [planes[0]!.map((value, i) => (value + planes[1]![i]!) / 2)]
    const [truth] = mono(part.vocals)
    expect(score(await vocalsOf(mono(mixture(part))), [truth!, truth!])).toBeGreaterThan(10)
  })

  it.each([-60, -30, 12])('gives the same at %i dB', async (decibels) => {
    const gain = 10 ** (decibels / 20)
    const scaled = await vocalsOf(mixture(part).map((plane) => plane.map((value) => value * gain)))
    const back = scaled.map((plane) => plane.map((value) => value / gain))
    expect(score(back, plain)).toBeGreaterThan(40)
  })

  it('gives the same, with left and right exchanged, when they are exchanged in the mixture', async () => {
    const exchanged = await vocalsOf(mixture(part).toReversed())
    expect(score(exchanged.toReversed(), plain)).toBeGreaterThan(60)
  })

  it('gives the same when the mixture has a constant offset', async () => {
    const moved = await vocalsOf(mixture(part).map((plane) => plane.map((value) => value + 0.2)))
    expect(score(moved, plain)).toBeGreaterThan(60)
  })

  // A voice has little above 4 kHz, so a narrow band costs little of its score.
  it.each([8000, 16_000, 22_050, 48_000, 96_000])('works on a source of %i Hz', async (sourceRate) => {
    const source = await at(sourceRate, mixture(part), rate)
    const truth = await at(rate, await at(sourceRate, part.vocals, rate), sourceRate)
    expect(score(await vocalsOf(source, sourceRate), truth)).toBeGreaterThan(6)
  })

  it('gives near-silent vocals where there is no voice', async () => {
    expect(decibels(await vocalsOf(part.accompaniments), part.accompaniments)).toBeLessThan(-20)
  })
})

// Two kinds of music outside the training data (HELD_OUT in training/mix.py).
describe('the model in the package, on recorded instrumental music', () => {
  it.skipIf(!existsSync(instrumental)).each([
    ['helland-orchestral-piano-rock', 0, -25],
    ['helland-orchestral-piano-rock', 3, -25],
    ['gm3-hip-hop-beats', 0, -40],
  ])(
    'gives near-silent vocals on %s from minute %i (skipped where ../shared/data/instrumental is missing)',
    async (name, minute, bound) => {
      const beginning = await beginningOf(join(instrumental, `${name}.ogg`), (60 * minute + 30) * rate)
      const music = beginning.map((plane) => plane.slice(60 * minute * rate))
      expect(decibels(await vocalsOf(music), music)).toBeLessThan(bound)
    },
  )
})

function excerpt({ vocals, accompaniments }: Song, from: number, to: number): Song {
  const cut = (plane: Float32Array) => plane.slice(from, to)
  return { vocals: vocals.map(cut), accompaniments: accompaniments.map(cut) }
}

function mixture({ vocals, accompaniments }: Song): Float32Array[] {
  return vocals.map((plane, channel) => plane.map((value, i) => value + accompaniments[channel]![i]!))
}

async function vocalsOf(planes: Float32Array[], sampleRate = rate): Promise<Float32Array[]> {
  const input = join(folder, 'mixture.wav')
  const outputs = { vocals: join(folder, 'vocals.wav'), accompaniments: join(folder, 'accompaniments.wav') }
  await writeWav(input, planes, sampleRate)
  await separate(input, { outputs, format: '32f' })
  return (await readAudio(outputs.vocals)).channels
}

async function beginningOf(path: string, sampleCount: number): Promise<Float32Array[]> {
  const parts: Float32Array[][] = [[], []]
  let read = 0
  for await (const { channels } of (await openAudio(path)).blocks) {
    channels.forEach((plane, channel) => parts[channel]!.push(plane.slice()))
    if ((read += channels[0]!.length) >= sampleCount) break
  }
  return parts.map(joined)
}

async function at(sampleRate: number, planes: Float32Array[], from: number): Promise<Float32Array[]> {
  return await collect(resample(streamOf(planes, from), sampleRate))
}

/** uSDR in dB. */
function score(estimate: Float32Array[], truth: Float32Array[]): number {
  const sampleCount = Math.min(estimate[0]!.length, truth[0]!.length)
  const comparison = stemComparison(rate)
  comparison.add(
    ...([truth, estimate].map((planes) => planes.map((plane) => plane.subarray(0, sampleCount))) as [
      Float32Array[],
      Float32Array[],
    ]),
  )
  return comparison.scores().uSdr
}

/** Power of the planes relative to that of the others, in dB. */
function decibels(planes: Float32Array[], of: Float32Array[]): number {
  const power = (each: Float32Array[]) =>
    each.reduce((sum, plane) => sum + plane.reduce((part, value) => part + value * value, 0), 0)
  return 10 * Math.log10(power(planes) / power(of))
}
