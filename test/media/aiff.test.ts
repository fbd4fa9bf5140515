import { spawnSync } from 'node:child_process'
import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import type { OutputFormat } from '../../src/core/media/encode/output-format.js'
import { noise, readAudio } from '../separation/tracks.js'
import { hasProgram } from './programs.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

/** Noise that clips, in more than one block of 8192 samples. */
const audio = (sampleCount: number, channels: number) =>
  Array.from({ length: channels }, (_, channel) => noise(sampleCount, channel + 1).map((sample) => sample * 1.2))

async function encode(name: string, format: OutputFormat, planes: Float32Array[], sampleRate = 44_100) {
  const path = join(folder, name)
  const encoder = await openEncoder(path, { sampleRate, channels: planes.length, format, tags: { title: 'Title' } })
  await encoder.write(planes.map((plane) => plane.subarray(0, 9999)))
  await encoder.write(planes.map((plane) => plane.subarray(9999)))
  const written = await encoder.close()
  expect(written.bytes).toBe((await readFile(path)).length)
  return { path, written }
}

/** The samples as a program decodes them, as little-endian 32-bit numbers. */
const decoders = {
  ffmpeg: (path: string, isFloat: boolean) => ['-v', 'error', '-i', path, '-f', isFloat ? 'f32le' : 's32le', '-'],
  // Without dither.
  sox: (path: string, isFloat: boolean) => {
    const encoding = isFloat ? 'floating-point' : 'signed'
    return ['-D', '-V1', path, '-t', 'raw', '-L', '-b', '32', '-e', encoding, '-']
  },
}

function decoded(program: keyof typeof decoders, path: string, isFloat: boolean): Buffer {
  const { stdout, stderr } = spawnSync(program, decoders[program](path, isFloat), { maxBuffer: 1e8 })
  expect(String(stderr)).toBe('')
  return stdout
}

describe.each([
  ['aiff', '16'],
  ['aiff24', '24'],
  ['aiff32f', '32f'],
] as const)('files of format %s', (format, wav) => {
  it.each([
    [1, 1],
    [20_001, 1],
    [20_000, 2],
    [20_001, 6],
  ])('hold the same samples as a WAV file: %i of %i channels', async (sampleCount, channels) => {
    const planes = audio(sampleCount, channels)
    const aiff = await encode('a.aiff', format, planes)
    const expected = await encode('a.wav', wav, planes)
    expect(aiff.written).toMatchObject({ sampleCount, clippedSamples: expected.written.clippedSamples })
    const [found, same] = [await readAudio(aiff.path), await readAudio(expected.path)]
    expect(found).toEqual(same)
  })

  it.each(['ffmpeg', 'sox'] as const)('are decoded by %s to the same samples (skipped without it)', async (program) => {
    if (!hasProgram(program)) return
    const isFloat = format === 'aiff32f'
    for (const [sampleCount, channels, rate] of [
      [20_001, 1, 44_100],
      [20_000, 2, 96_000],
      [12_345, 2, 11_025],
    ] as const) {
      // sox clips floats beyond full scale.
      const planes = audio(sampleCount, channels).map((plane) => (isFloat ? plane.map((sample) => sample / 3) : plane))
      const { path } = await encode('b.aiff', format, planes, rate)
      const { path: same } = await encode('b.wav', wav, planes, rate)
      const samples = decoded(program, path, isFloat)
      expect(samples.length).toBe(4 * sampleCount * channels)
      expect(samples.equals(decoded(program, same, isFloat))).toBe(true)
    }
  })

  it('can be read while they grow, and hold only what is written', async () => {
    const planes = audio(20_000, 2)
    const path = join(folder, 'growing.aiff')
    const encoder = await openEncoder(path, { sampleRate: 44_100, channels: 2, format })
    await encoder.write(planes)
    const growing = await readFile(path)
    const stream = await openAudio(path)
    expect([stream.sampleCount, stream.statedSeconds]).toEqual([20_000, undefined])
    const other = join(folder, 'cut.aiff')
    await writeFile(other, growing)
    if (hasProgram('ffmpeg')) expect(decoded('ffmpeg', other, format === 'aiff32f').length).toBe(4 * 20_000 * 2)
    await encoder.close()
    const whole = await readFile(path)
    const start = growing.indexOf('SSND') + 8
    expect(growing.subarray(start).equals(whole.subarray(start))).toBe(true)
  })

  it('are continued where an encoder stopped', async () => {
    const planes = audio(20_000, 2)
    const { path: expected, written } = await encode('whole.aiff', format, planes)
    const path = join(folder, 'parts.aiff')
    const options = { sampleRate: 44_100, channels: 2, format, tags: { title: 'Title' } }
    const first = await openEncoder(path, options)
    await first.write(planes.map((plane) => plane.subarray(0, 7777)))
    const from = first.state?.()
    // This part is lost: it is not part of the state.
    await first.write(planes.map((plane) => plane.subarray(0, 100)))
    await first.abandon()
    const second = await openEncoder(path, { ...options, from })
    await second.write(planes.map((plane) => plane.subarray(7777)))
    expect(await second.close()).toEqual(written)
    expect((await readFile(path)).equals(await readFile(expected))).toBe(true)
  })
})

it('an empty file is complete', async () => {
  const { path } = await encode('empty.aiff', 'aiff', [new Float32Array(0)])
  const file = await readFile(path)
  expect(file.readUInt32BE(4)).toBe(file.length - 8)
  expect(file.readUInt32BE(file.indexOf('SSND') + 4)).toBe(8)
})

it('more than a header can state is refused before it is written', async () => {
  const path = join(folder, 'long.aiff')
  const bytes = 2 ** 32 - 8 * 1024 ** 2
  // A sparse file, which takes no space.
  const file = await open(path, 'w')
  await file.truncate(bytes)
  await file.close()
  const from = { bytes, clippedSamples: 0 }
  const encoder = await openEncoder(path, { sampleRate: 44_100, channels: 1, format: 'aiff', from })
  const error = { code: 'BAD_INPUT', reason: 'too_long', message: expect.stringContaining('holds 4 GiB') }
  await expect(encoder.write([new Float32Array(30)])).rejects.toMatchObject(error)
  await encoder.abandon()
})
