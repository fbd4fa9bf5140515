import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { compareBaselines } from '../../src/core/workflows/separation/evaluation/compare.js'
import { mixSong } from '../../src/core/workflows/separation/evaluation/mix-song.js'
import { sideBySide } from '../../src/core/workflows/separation/evaluation/side-by-side.js'
import { findSongs } from '../../src/core/workflows/separation/evaluation/song-folders.js'
import { falseVocalsMeter } from '../../src/core/workflows/separation/evaluation/scores.js'
import { blocksOf, collect, noise, readAudio, sine, streamOf, writeWav } from './tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const rate = 8000
const folder = temporaryFolder()

/** Creates empty files of these names. */
async function files(name: string, paths: string[]): Promise<string> {
  for (const path of paths) {
    await mkdir(join(folder, name, path, '..'), { recursive: true })
    await writeFile(join(folder, name, path), '')
  }
  return join(folder, name)
}

describe('the songs of a folder', () => {
  it('are found in both layouts and in the order of their names', async () => {
    const root = await files('layouts', [
      'song 10/vocals.wav',
      'song 10/accompaniments.ogg',
      'song 2/vocals.flac',
      'song 2/accompaniments.wav',
      'song 2/mixture.mp3',
      'song 2/vocals.json',
      'test/x/mixture.wav',
      'test/x/vocals.wav',
      'test/x/drums.wav',
      'test/x/bass.wav',
      'test/x/other.wav',
      'notes/readme.txt',
      '.hidden/vocals.wav',
    ])
    const songs = await findSongs(root)
    expect(songs.map(({ name }) => name)).toEqual(['song 2', 'song 10', join('test', 'x')])
    expect(songs[0]).toMatchObject({
      vocals: join(root, 'song 2', 'vocals.flac'),
      mixture: join(root, 'song 2', 'mixture.mp3'),
    })
    expect(songs[1]!.mixture).toBeUndefined()
    expect(songs[2]!.accompaniments).toEqual(
      ['drums', 'bass', 'other'].map((part) => join(root, 'test', 'x', `${part}.wav`)),
    )
    expect((await findSongs(join(root, 'song 10'))).map(({ name }) => name)).toEqual(['song 10'])
  })

  it('are reported missing: no folder, a file, an empty folder, a song without a stem or with one twice', async () => {
    await expect(findSongs(join(folder, 'nowhere'))).rejects.toMatchObject({ code: 'NOT_FOUND' })
    const root = await files('wrong', [
      'a/x.txt',
      'b/drums.wav',
      'b/vocals.wav',
      'b/other.wav',
      'c/vocals.wav',
      'd/vocals.wav',
      'd/vocals.mp3',
    ])
    await expect(findSongs(join(root, 'a', 'x.txt'))).rejects.toThrow('is not a folder')
    await expect(findSongs(join(root, 'a'))).rejects.toThrow('There is no song in')
    await expect(findSongs(join(root, 'b'))).rejects.toThrow('The song "b" has no bass.')
    await expect(findSongs(join(root, 'c'))).rejects.toThrow('The song "c" has no accompaniments.')
    await expect(findSongs(join(root, 'd'))).rejects.toThrow('two files for vocals')
  })
})

describe('streams side by side', () => {
  it('keep their channels in order whatever their blocks, and end with the shortest', async () => {
    const [a, b] = [[noise(50_000, 1), noise(50_000, 2)], [noise(50_300, 3)]]
    const both = sideBySide([
      { name: 'a', stream: streamOf(a, rate) },
      { name: 'b', stream: { ...streamOf(b, rate), blocks: blocksOf(b, [7, 20_000]) } },
    ])
    expect(both.channelCount).toBe(3)
    expect(await collect(both)).toEqual([...a, b[0]!.subarray(0, 50_000)])
  })

  it('refuse other rates and other lengths, naming the files', async () => {
    const plane = noise(2 * rate)
    expect(() =>
      sideBySide([
        { name: 'a.wav', stream: streamOf([plane], rate) },
        { name: 'b.wav', stream: streamOf([plane], 2 * rate) },
      ]),
    ).toThrow('different sample rates: a.wav 8000 Hz, b.wav 16000 Hz')
    for (const order of [1, -1]) {
      const sources = [
        { name: 'a.wav', stream: streamOf([plane], rate) },
        { name: 'b.wav', stream: streamOf([plane.subarray(0, rate)], rate) },
      ]
      await expect(collect(sideBySide(order > 0 ? sources : sources.reverse()))).rejects.toThrow(
        'b.wav ends after 1.00 s, a.wav is longer',
      )
    }
  })
})

describe('false vocals', () => {
  it('are measured in the seconds without vocals, in dB relative to the mixture', () => {
    const mixture = noise(4 * rate + 100)
    const vocals = mixture.map((value, i) => (i < rate ? value : i < 2 * rate ? value * 1e-4 : 0))
    const estimate = mixture.map((value, i) =>
      i < rate ? value : i < 3 * rate ? value / 10 : i < 4 * rate ? value / 100 : value,
    )
    const measured = falseVocalsMeter(rate)
    for (let from = 0; from < mixture.length; from += 777) {
      const cut = (plane: Float32Array) => [plane.subarray(from, from + 777)]
      measured.add(cut(vocals), cut(mixture), cut(estimate))
    }
    const energy = (plane: Float32Array, from: number, to: number) =>
      plane.subarray(from * rate, to * rate).reduce((sum, value) => sum + value * value, 0)
    expect(measured.level()).toBeCloseTo(10 * Math.log10(energy(estimate, 1, 4) / energy(mixture, 1, 4)), 6)
  })

  it('of a song with vocals throughout are unknown', () => {
    const measured = falseVocalsMeter(rate)
    measured.add([noise(rate)], [noise(rate)], [noise(rate)])
    expect(measured.level()).toBeNaN()
  })
})

describe('baselines', () => {
  const sampleRate = 44_100
  const sampleCount = 3 * 65_536 + 1001
  const centre = sine(sampleCount, 1000, sampleRate, 0.3)
  const low = sine(sampleCount, 60, sampleRate, 0.3)
  const empty = new Float32Array(sampleCount)

  async function scoresOf(name: string, vocals: Float32Array[], accompaniments: Float32Array[]) {
    const directory = join(folder, name)
    await mkdir(directory)
    const song = {
      name,
      vocals: join(directory, 'vocals.wav'),
      accompaniments: [join(directory, 'accompaniments.wav')],
    }
    await writeWav(song.vocals, vocals, sampleRate)
    await writeWav(song.accompaniments[0]!, accompaniments, sampleRate)
    const mixed = await mixSong(song, join(directory, 'sum.wav'))
    expect(mixed.seconds).toBeCloseTo(sampleCount / sampleRate, 6)
    const sum = (await readAudio(mixed.song.mixture)).channels
    expect(sum.map((plane) => plane[12_345])).toEqual(
      [0, 1].map((channel) =>
        Math.fround((vocals[channel]! ?? vocals[0]!)[12_345]! + accompaniments[channel]![12_345]!),
      ),
    )
    return Object.fromEntries((await compareBaselines(mixed.song)).map(({ method, ...scores }) => [method, scores]))
  }

  it('have a band gain that keeps 0.35 of the middle and nothing of the bass, across all joints', async () => {
    const scores = await scoresOf('band', [centre], [low, low])
    expect(scores['0.35 x 150 Hz to 12 kHz']!.vocals.uSdr).toBeCloseTo(-20 * Math.log10(0.65), 2)
    expect(scores['0.35 x 150 Hz to 12 kHz']!.sumError).toBeLessThan(1e-6)
    expect(scores['0.35 x 150 Hz to 12 kHz']!.vocals.siSdr).toBeGreaterThan(40)
  })

  it('have a centre mask that takes what is equal in both channels and leaves what is only in one', async () => {
    const scores = await scoresOf('centre', [centre, centre], [sine(sampleCount, 5000, sampleRate, 0.3), empty])
    expect(scores['centre mask']!.vocals.uSdr).toBeGreaterThan(40)
    expect(scores['centre mask']!.accompaniments.uSdr).toBeGreaterThan(40)
    expect(scores['0.35 x 150 Hz to 12 kHz']!.vocals.uSdr).toBeLessThan(5)
  })

  it('have silence, the mixture and a quarter of it, whose scores follow from the levels alone', async () => {
    const scores = await scoresOf('levels', [centre, centre], [low, low])
    const energy = (plane: Float32Array) => plane.reduce((sum, value) => sum + value * value, 0)
    const mixture = centre.map((value, i) => value + low[i]!)
    expect(scores.silence!.vocals.uSdr).toBeCloseTo(0, 6)
    expect(scores.silence!.accompaniments.uSdr).toBeCloseTo(10 * Math.log10(energy(low) / energy(centre)), 4)
    expect(scores.mixture!.vocals.uSdr).toBeCloseTo(10 * Math.log10(energy(centre) / energy(low)), 4)
    expect(scores.mixture!.accompaniments.uSdr).toBeCloseTo(10 * Math.log10(energy(low) / energy(centre)), 4)
    expect(scores['mixture x 1/4']!.vocals.uSdr).toBeCloseTo(
      10 * Math.log10(energy(centre) / energy(centre.map((value, i) => value - mixture[i]! / 4))),
      4,
    )
    expect(scores['mixture x 1/4']!.sumError).toBeLessThan(1e-7)
  })

  it('give a song without vocals no scores for vocals, only for the rest and for false vocals', async () => {
    const scores = await scoresOf('instrumental', [empty, empty], [low, low])
    expect(scores['mixture x 1/4']).toMatchObject({ vocals: { uSdr: NaN, cSdr: NaN, siSdr: NaN } })
    expect(scores['mixture x 1/4']!.falseVocals).toBeCloseTo(20 * Math.log10(0.25), 4)
    expect(scores['mixture x 1/4']!.accompaniments.uSdr).toBeCloseTo(20 * Math.log10(4), 4)
  })
})
