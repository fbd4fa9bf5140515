/**
 * Makes the demo song: `node demo/make-song.mjs [folder]` writes `vocals.wav`, `accompaniments.wav` and `mixture.wav`, the same
 * bytes every time. With `--encode` it also makes the two Ogg Vorbis files of this folder from them, which needs `oggenc`.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { playBand } from './band.mjs'
import { toWav } from './pcm-wav.mjs'
import { singSong } from './singer.mjs'
import { sampleRate } from './synthesis/track.mjs'

const { values, positionals } = parseArgs({ allowPositionals: true, options: { encode: { type: 'boolean' } } })
const folder = positionals[0] ?? fileURLToPath(new URL('../.cache/demo-song', import.meta.url))

const vocals = singSong()
const accompaniments = playBand()
const mixture = {
  left: vocals.left.map((sample, i) => sample + accompaniments.left[i]),
  right: vocals.right.map((sample, i) => sample + accompaniments.right[i]),
}
const peak = Math.max(
  ...[mixture, vocals, accompaniments].flatMap(({ left, right }) => [loudest(left), loudest(right)]),
)

mkdirSync(folder, { recursive: true })
for (const [name, track] of Object.entries({ vocals, accompaniments, mixture })) {
  const planes = [track.left, track.right].map((plane) => plane.map((sample) => (0.89 * sample) / peak))
  writeFileSync(join(folder, `${name}.wav`), toWav(planes, sampleRate))
}
console.log(`${folder}: vocals.wav, accompaniments.wav and mixture.wav, ${(vocals.frames / sampleRate).toFixed(1)} s`)

if (values.encode) {
  for (const name of ['vocals', 'accompaniments']) {
    const target = fileURLToPath(new URL(`${name}.ogg`, import.meta.url))
    execFileSync('oggenc', [
      '--quiet',
      '--quality',
      '2',
      '--serial',
      '1',
      '--output',
      target,
      join(folder, `${name}.wav`),
    ])
  }
}

function loudest(samples) {
  return samples.reduce((peak, sample) => Math.max(peak, Math.abs(sample)), 0)
}
