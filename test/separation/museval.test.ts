import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { compareFiles } from '../../src/core/workflows/separation/evaluation/compare.js'
import { stereoMusic, stereoNoise, without } from './architecture-run.js'
import { pythonWith } from './peers.js'
import { writeWav } from './tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const python = pythonWith('museval', 'soundfile')
const rate = 44_100

/** Prints the SDR of BSS Eval v4 for each stem and second. */
const script = `
import json, sys, numpy, soundfile, museval
folder = sys.argv[1]
stems = ('vocals', 'accompaniments')
read = lambda kind: numpy.array([soundfile.read(f'{folder}/{kind}-{stem}.wav')[0] for stem in stems])
sdr, isr, sir, sar = museval.evaluate(read('true'), read('found'))
print(json.dumps({stem: list(map(float, numpy.atleast_1d(values))) for stem, values in zip(stems, sdr)}))
`

const folder = temporaryFolder()

describe.skipIf(python === undefined)(
  'cSDR, which is the SDR of BSS Eval v4 (skipped without Python with museval)',
  () => {
    it('is the same median as that of museval, to 0.01 dB', async () => {
      const seconds = 7
      const noise = stereoNoise(seconds * rate, 5)
      const [vocals, accompaniments] = [stereoMusic(seconds * rate), stereoNoise(seconds * rate, 11)]
      // The error differs in each second, in level and in the leakage from the other stem.
      const found = vocals.map((plane, channel) =>
        plane.map((value, i) => {
          const second = Math.floor(i / rate)
          return (1 - 0.05 * second) * value + 0.02 * second * accompaniments[channel]![i]! + 0.01 * noise[channel]![i]!
        }),
      )
      const mixture = vocals.map((plane, channel) => plane.map((value, i) => value + accompaniments[channel]![i]!))
      const rest = without(mixture, found)
      const path = (name: string) => join(folder, `${name}.wav`)
      const files = {
        mixture,
        'true-vocals': vocals,
        'true-accompaniments': accompaniments,
        'found-vocals': found,
        'found-accompaniments': rest,
      }
      for (const [name, planes] of Object.entries(files)) await writeWav(path(name), planes, rate)
      const song = {
        name: 'song',
        mixture: path('mixture'),
        vocals: path('true-vocals'),
        accompaniments: [path('true-accompaniments')],
      }
      const estimate = { vocals: path('found-vocals'), accompaniments: path('found-accompaniments') }
      const scores = await compareFiles(song, estimate, rate)

      await writeFile(join(folder, 'museval-scores.py'), script)
      const printed = execFileSync(python ?? '', [join(folder, 'museval-scores.py'), folder], { encoding: 'utf8' })
      const sdr = JSON.parse(printed) as Record<'vocals' | 'accompaniments', number[]>
      for (const stem of ['vocals', 'accompaniments'] as const) {
        expect(sdr[stem]).toHaveLength(seconds)
        const sorted = sdr[stem].toSorted((a, b) => a - b)
        expect(Math.abs(scores[stem].cSdr - sorted[(seconds - 1) / 2]!)).toBeLessThan(0.01)
      }
      // Scores far apart, so that a wrong chunk would be detected.
      expect(Math.max(...sdr.vocals) - Math.min(...sdr.vocals)).toBeGreaterThan(10)
    })
  },
)
