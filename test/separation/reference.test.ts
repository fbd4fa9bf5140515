import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { stemComparison } from '../../src/core/workflows/separation/evaluation/scores.js'
import { embeddedModelFolder } from '../../src/core/models/load-model.js'
import { separate } from '../../src/core/workflows/separation/separate.js'
import { maxDifference, readAudio, writeWav } from './tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const songs = fileURLToPath(new URL('../../../shared/data/everything-is-free/', import.meta.url))
const hasSongs = existsSync(songs)
const reference: { songs: Record<string, { vocals: number; accompaniments: number }>; tolerance_db: number } =
  JSON.parse(await readFile(join(embeddedModelFolder, 'model.json'), 'utf8')).reference

// One whole song, the shortest, takes some 20 s: whole, because an error at a joint or an end would vanish in an
// average of excerpts that avoid both. All five take minutes, so they run only on request.
const chosen = process.env.STEMWORK_TEST_ALL_SONGS ? Object.keys(reference.songs) : ['potassium']

const folder = temporaryFolder()

describe('the embedded model in the whole pipeline', () => {
  it.skipIf(!hasSongs).each(chosen)(
    'reaches the scores of its reference on %s within 0.05 dB (skipped without ../shared/data/everything-is-free)',
    async (song) => {
      const stems = await Promise.all(
        ['vocals', 'accompaniments'].map((stem) => readAudio(join(songs, song, `${stem}.ogg`))),
      )
      const sampleCount = Math.min(...stems.map(({ channels }) => channels[0]!.length))
      const [vocals, accompaniments] = stems.map(({ channels }) =>
        channels.map((plane) => plane.subarray(0, sampleCount)),
      )
      const mixture = vocals!.map((plane, channel) => plane.map((value, i) => value + accompaniments![channel]![i]!))
      const input = join(folder, `${song}.wav`)
      const outputs = { vocals: join(folder, 'vocals.wav'), accompaniments: join(folder, 'accompaniments.wav') }
      await writeWav(input, mixture, 44_100)
      await separate(input, { outputs, format: '32f' })

      const estimates = {
        vocals: (await readAudio(outputs.vocals)).channels,
        accompaniments: (await readAudio(outputs.accompaniments)).channels,
      }
      for (const [stem, truth] of Object.entries({ vocals, accompaniments }) as [
        'vocals' | 'accompaniments',
        Float32Array[],
      ][]) {
        const comparison = stemComparison(44_100)
        comparison.add(truth, estimates[stem])
        expect(Math.abs(comparison.scores().uSdr - reference.songs[song]![stem])).toBeLessThan(reference.tolerance_db)
      }
      for (const channel of [0, 1]) {
        const sum = estimates.vocals[channel]!.map((value, i) => value + estimates.accompaniments[channel]![i]!)
        expect(maxDifference(sum, mixture[channel]!)).toBeLessThan(1e-4)
      }
    },
    600_000,
  )
})
