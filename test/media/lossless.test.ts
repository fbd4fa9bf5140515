import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { noise, readAudio, sine, writeWav } from '../separation/tracks.js'
import { hasProgram } from './programs.js'
import { temporaryFolder } from '../temporary-folder.js'

const rate = 44_100
const sizes = [16, 24] as const
const names = ['a.wv', 'a.tta', 'a.m4a', 'flac.mkv', 'flac.mp4', 'flac.ogg', 'a.flac'] as const

const folder = temporaryFolder()
beforeAll(async () => {
  const [tone, hiss] = [sine(2 * rate, 441, rate, 0.6), noise(2 * rate)]
  const left = tone.map((value, i) => value + 0.7 * hiss[i]!)
  // Full scale on both sides, and silence at the beginning.
  left.fill(0, 0, 2000)
  left.set([1, -1, 1, -1], 3000)
  for (const bits of sizes) await writeWav(join(folder, `${bits}.wav`), [left, hiss], rate, `${bits}`)
})

function encode(bits: 16 | 24, name: (typeof names)[number]): string {
  const path = join(folder, `${bits}-${name}`)
  const codec = { wv: 'wavpack', tta: 'tta', m4a: 'alac' }[name.split('.')[1] as 'wv'] ?? 'flac'
  const isPlanar = codec === 'wavpack' || codec === 'alac'
  const sampleFormat = `s${bits === 16 ? 16 : 32}${isPlanar ? 'p' : ''}`
  const args = ['-c:a', codec, '-sample_fmt', sampleFormat, '-bits_per_raw_sample', String(bits), '-strict', '-2']
  execFileSync('ffmpeg', ['-v', 'error', '-y', '-i', join(folder, `${bits}.wav`), ...args, path])
  return path
}

it.skipIf(!hasProgram('ffmpeg')).each(names.flatMap((name) => sizes.map((bits) => [name, bits] as const)))(
  '%s of %i bits is exact to the bit (skipped without ffmpeg)',
  async (name, bits) => {
    const { channels } = await readAudio(join(folder, `${bits}.wav`))
    const decoded = await readAudio(encode(bits, name))
    expect(decoded.channels.map((plane) => plane.length)).toEqual(channels.map((plane) => plane.length))
    for (const [index, plane] of channels.entries())
      expect(decoded.channels[index]!.findIndex((value, i) => value !== plane[i])).toBe(-1)
  },
)
