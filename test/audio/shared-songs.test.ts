import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { measureLoudness } from '../../src/core/media/loudness/measure-loudness.js'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import { hasProgram } from '../media/programs.js'
import { hasSharedSongs, sharedSongs } from './shared-songs.js'

let folder: string
const mixture = (name: string) => join(folder, `${name}.wav`)

describe.skipIf(!hasSharedSongs || !hasProgram('ffmpeg'))(
  'the mixture of each of five songs (skipped without ffmpeg and ../shared)',
  () => {
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'stemwork-songs-'))
      for (const { name, vocals, accompaniments } of sharedSongs) {
        const inputs = [vocals, accompaniments].flatMap((path) => ['-i', path])
        const mixed = ['-filter_complex', 'amix=2:normalize=0', '-c:a', 'pcm_f32le', mixture(name)]
        execFileSync('ffmpeg', ['-v', 'error', ...inputs, ...mixed])
      }
    })
    afterAll(() => rm(folder, { recursive: true }))

    it.each(sharedSongs)('$name has the loudness that ebur128 of ffmpeg finds, within 0.1 LU', async ({ name }) => {
      const filter = 'ebur128=peak=true+sample:framelog=verbose'
      const args = ['-nostats', '-i', mixture(name), '-af', filter, '-f', 'null', '-']
      const { stderr } = spawnSync('ffmpeg', args, { encoding: 'utf8' })
      const summary = stderr.slice(stderr.lastIndexOf('Summary:'))
      const value = (label: RegExp) => Number(new RegExp(`${label.source}\\s+(-?[\\d.]+)`).exec(summary)?.[1])
      const found = await measureLoudness(await openAudio(mixture(name)))
      const near = (own: number, other: number) => expect(Math.abs(own - other), summary).toBeLessThanOrEqual(0.1)
      near(found.integrated, value(/I:/))
      near(found.range, value(/LRA:/))
      near(found.truePeak, value(/True peak:\s+Peak:/))
      near(found.samplePeak, value(/Sample peak:\s+Peak:/))
    })
  },
)
