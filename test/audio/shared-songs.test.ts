import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { analyzeAudio } from '../../src/core/audio/analysis/analyze-audio.js'
import { measureLoudness } from '../../src/core/audio/loudness/measure-loudness.js'
import { openAudio } from '../../src/core/separation/decode/open-audio.js'
import { hasProgram } from '../separation/programs.js'
import { hasSharedSongs, sharedSongs } from './shared-songs.js'

/** As the package of the album tells: github.com/ichbinsoftware/everythingisfree, index.js. */
const album: Record<string, { bpm: number; key: string }> = {
  hydrogen: { bpm: 132, key: 'D major' },
  lithium: { bpm: 124, key: 'G minor' },
  sodium: { bpm: 140, key: 'G minor' },
  potassium: { bpm: 90, key: 'C major' },
  rubidium: { bpm: 132, key: 'G major' },
}

let folder: string
const excerpt = (name: string) => join(folder, `${name}.wav`)

describe.skipIf(!hasSharedSongs || !hasProgram('ffmpeg'))(
  'a minute of each of five songs (skipped without ffmpeg and ../shared)',
  () => {
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'stemwork-songs-'))
      for (const { name, vocals, accompaniments } of sharedSongs) {
        const inputs = [vocals, accompaniments].flatMap((path) => ['-ss', '60', '-t', '60', '-i', path])
        const mixed = ['-filter_complex', 'amix=2:normalize=0', '-c:a', 'pcm_f32le', excerpt(name)]
        execFileSync('ffmpeg', ['-v', 'error', ...inputs, ...mixed])
      }
    })
    afterAll(() => rm(folder, { recursive: true }))

    it.each(sharedSongs)('$name has the loudness that ebur128 of ffmpeg finds, within 0.1 LU', async ({ name }) => {
      const filter = 'ebur128=peak=true+sample:framelog=verbose'
      const args = ['-nostats', '-i', excerpt(name), '-af', filter, '-f', 'null', '-']
      const { stderr } = spawnSync('ffmpeg', args, { encoding: 'utf8' })
      const summary = stderr.slice(stderr.lastIndexOf('Summary:'))
      const value = (label: RegExp) => Number(new RegExp(`${label.source}\\s+(-?[\\d.]+)`).exec(summary)?.[1])
      const found = await measureLoudness(await openAudio(excerpt(name)))
      const near = (own: number, other: number) => expect(Math.abs(own - other), summary).toBeLessThanOrEqual(0.1)
      near(found.integrated, value(/I:/))
      near(found.range, value(/LRA:/))
      near(found.truePeak, value(/True peak:\s+Peak:/))
      near(found.samplePeak, value(/Sample peak:\s+Peak:/))
    })

    it('has, for most of them, the tempo and the key that the album tells', async () => {
      const found: [name: string, bpm: number | undefined, key: string | undefined][] = []
      for (const { name } of sharedSongs) {
        const { tempo, key } = await analyzeAudio(await openAudio(excerpt(name)))
        found.push([name, tempo?.bpm, key?.name])
      }
      const tempi = found.filter(([name, bpm = 0]) => Math.abs(bpm / (album[name]?.bpm ?? 0) - 1) < 0.02)
      const keys = found.filter(([name, , key]) => key === album[name]?.key)
      // The tempo of potassium is found as four thirds of it, that of rubidium as two thirds.
      expect(tempi.length, JSON.stringify(found)).toBeGreaterThanOrEqual(3)
      expect(keys.length, JSON.stringify(found)).toBeGreaterThanOrEqual(4)
    })
  },
)
