import { spawnSync } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { OutputFormat } from '../../src/core/media/encode/output-format.js'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import { maxDifference, noise, readAudio } from '../separation/tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

const hasFfmpeg = spawnSync('ffmpeg', ['-version']).error === undefined
const hasFlac = spawnSync('flac', ['--version']).error === undefined

async function encode(name: string, format: OutputFormat, planes: Float32Array[], pieces = 10_000) {
  const path = join(folder, name)
  const encoder = await openEncoder(path, { sampleRate: 44_100, channels: planes.length, format })
  for (let start = 0; start < planes[0]!.length; start += pieces) {
    await encoder.write(planes.map((plane) => plane.subarray(start, start + pieces)))
  }
  return { path, written: await encoder.close() }
}

/** A tone and a click, with a sharp start: shows every shift in time. */
function music(sampleCount: number, phase: number): Float32Array {
  return Float32Array.from({ length: sampleCount }, (_, i) => 0.4 * Math.sin(i * 0.03 + phase) + (i === 5000 ? 0.5 : 0))
}

describe('FLAC files', () => {
  it.each([
    ['flac', '16', 100_001],
    ['flac24', '24', 100_001],
    ['flac', '16', 1],
    ['flac24', '24', 4095],
  ] as const)('hold the same samples as WAV files: %s is %s, %d samples', async (format, wav, sampleCount) => {
    const planes = [noise(sampleCount, 1), noise(sampleCount, 2)].map((plane) => plane.map((sample) => sample * 1.2))
    const flac = await encode(`${format}-${sampleCount}.flac`, format, planes)
    const expected = await encode(`${format}-${sampleCount}.wav`, wav, planes)
    expect(flac.written).toMatchObject({
      sampleCount,
      clippedSamples: expected.written.clippedSamples,
      bytes: (await stat(flac.path)).size,
    })
    const [found, same] = [await readAudio(flac.path), await readAudio(expected.path)]
    expect(found.channels[0]!.length).toBe(sampleCount)
    found.channels.forEach((plane, channel) => expect(maxDifference(plane, same.channels[channel]!)).toBe(0))
  })

  it.skipIf(!hasFlac)(
    'pass the test of the reference decoder (skipped where the program flac is not installed)',
    async () => {
      const { path } = await encode('test.flac', 'flac24', [noise(50_000, 3), noise(50_000, 4)])
      const { status, stderr } = spawnSync('flac', ['-t', '-w', path], { encoding: 'utf8' })
      expect(stderr).toContain('ok')
      expect(status).toBe(0)
    },
  )

  it('are smaller for quiet music', async () => {
    const planes = [music(200_000, 0), music(200_000, 1)]
    expect((await encode('music.flac', 'flac', planes)).written.bytes).toBeLessThan(
      0.7 * (await encode('music.wav', '16', planes)).written.bytes,
    )
  })
})

describe('MP3 files', () => {
  it.each([44_100 * 3 + 17, 1152 * 40, 1152 * 40 - 1, 600])(
    'return %d samples at their positions',
    async (sampleCount) => {
      const planes = [music(sampleCount, 0), music(sampleCount, 1)]
      const { path, written } = await encode(`${sampleCount}.mp3`, 'mp3', planes)
      expect(written).toMatchObject({ sampleCount, bytes: (await stat(path)).size })
      const found = await readAudio(path)
      expect(found.channels[0]!.length).toBe(sampleCount)
      found.channels.forEach((plane, channel) => expect(maxDifference(plane, planes[channel]!)).toBeLessThan(0.05))
    },
  )

  it.skipIf(!hasFfmpeg)('have the right length in ffmpeg, too', async () => {
    const { path } = await encode('length.mp3', 'mp3', [music(100_000, 0), music(100_000, 1)])
    const { stdout, stderr } = spawnSync('ffmpeg', ['-v', 'error', '-i', path, '-f', 'f32le', '-'], {
      maxBuffer: 10_000_000,
    })
    expect(String(stderr)).toBe('')
    expect(stdout.length / 8).toBe(100_000)
  })

  it('do not depend on how the audio arrives', async () => {
    const planes = [music(100_000, 0), music(100_000, 1)]
    const whole = await encode('whole.mp3', 'mp3', planes, 100_000)
    const pieces = await encode('pieces.mp3', 'mp3', planes, 333)
    expect(pieces.written).toEqual(whole.written)
  })
})

describe('an encoder that is abandoned', () => {
  it.each(['16', 'flac', 'mp3'] as const)('%s leaves no trace in the next one', async (format) => {
    const planes = [music(50_000, 0), music(50_000, 1)]
    const { written } = await encode(`first-${format}`, format, planes)
    const encoder = await openEncoder(join(folder, `abandoned-${format}`), { sampleRate: 44_100, channels: 2, format })
    await encoder.write([noise(5000, 1), noise(5000, 2)])
    await encoder.abandon()
    expect((await encode(`abandoned-${format}`, format, planes)).written).toEqual(written)
  })
})
