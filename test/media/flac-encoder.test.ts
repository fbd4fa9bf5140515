import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import type { OutputFormat } from '../../src/core/media/encode/output-format.js'
import { noise, sine } from '../separation/tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

const isThere = (program: string, argument: string) => spawnSync(program, [argument]).error === undefined
const [hasFlac, hasFfmpeg] = [isThere('flac', '--version'), isThere('ffmpeg', '-version')]

/** Signals at the limits of FLAC frames. */
const signals: Record<string, (sampleCount: number) => Float32Array[]> = {
  silence: (count) => [new Float32Array(count), new Float32Array(count)],
  'a constant': (count) => [new Float32Array(count).fill(0.25), new Float32Array(count).fill(-1)],
  'the loudest noise': (count) => [noise(count, 1), noise(count, 2)].map((plane) => plane.map((value) => 2.2 * value)),
  'opposite ends of the range': (count) => {
    const square = Float32Array.from({ length: count }, (_, i) => (i % 2 === 0 ? 1 : -1))
    return [square, square.map((value) => -value)]
  },
  'equal channels': (count) => [sine(count, 441, 44_100), sine(count, 441, 44_100)],
  'tones with clicks': (count) =>
    [1, 2].map((seed) => sine(count, 300 * seed, 44_100).map((value, i) => (i % 3001 === seed ? -0.9 : value))),
  'the smallest steps': (count) =>
    [noise(count, 3), noise(count, 4)].map((plane) => plane.map((value) => value / 12_000)),
  'one channel': (count) => [sine(count, 1000, 44_100)],
  'six channels': (count) => [1, 2, 3, 4, 5, 6].map((seed) => noise(count, seed)),
}
const lengths = [1, 4, 9, 4095, 4096, 4097, 4096 * 3 + 130]

async function encode(format: OutputFormat, planes: Float32Array[], sampleRate = 44_100): Promise<string> {
  const path = join(folder, `signal.${format}`)
  const encoder = await openEncoder(path, { sampleRate, channels: planes.length, format })
  for (let start = 0; start < planes[0]!.length; start += 1000)
    await encoder.write(planes.map((plane) => plane.subarray(start, start + 1000)))
  await encoder.close()
  return path
}

/** The samples of a WAV file as stored. */
async function samplesOf(wav: string): Promise<Buffer> {
  const file = await readFile(wav)
  return file.subarray(file.indexOf('data') + 8)
}

function run(program: string, args: string[]): Buffer {
  const { status, stdout, stderr } = spawnSync(program, args, { maxBuffer: 50_000_000 })
  expect(String(stderr)).toBe('')
  expect(status).toBe(0)
  return stdout
}

const raw = ['--force-raw-format', '--endian=little', '--sign=signed']

describe.each([
  ['flac', '16'],
  ['flac24', '24'],
] as const)('the reference decoder gets from %s the same samples as a WAV file of that width holds', (format, wav) => {
  it.skipIf(!hasFlac).each(Object.keys(signals))(
    'of %s (skipped where the program flac is not installed)',
    async (name) => {
      for (const sampleCount of name.includes('channel') ? [4097] : lengths) {
        const planes = signals[name]!(sampleCount)
        const expected = await samplesOf(await encode(wav, planes))
        const flac = await encode(format, planes)
        // Checks the MD5, and warns (-w) of any deviation from the format.
        run('flac', ['-s', '-t', '-w', flac])
        const found = run('flac', ['-s', '-d', '-c', ...raw, flac])
        expect(found.equals(expected.subarray(0, found.length))).toBe(true)
        expect(found.length).toBe(sampleCount * planes.length * (Number(wav) / 8))
      }
    },
  )

  it.skipIf(!hasFfmpeg)('and so does ffmpeg, at any sample rate (skipped where it is not installed)', async () => {
    for (const sampleRate of [44_100, 48_000, 37_800, 192_000]) {
      const planes = signals['tones with clicks']!(50_000)
      const flac = await encode(format, planes, sampleRate)
      const [found, expected] = [flac, await encode(wav, planes, sampleRate)].map((path) =>
        run('ffmpeg', ['-v', 'error', '-i', path, '-f', 's32le', '-']),
      )
      expect(found!.equals(expected!)).toBe(true)
    }
  })
})

it.skipIf(!hasFlac)(
  'FLAC files are as small as the reference encoder makes them (skipped without the program flac)',
  async () => {
    const hiss = noise(400_000, 5)
    const music = [0, 1].map((phase) =>
      Float32Array.from({ length: 400_000 }, (_, i) => {
        const swell = Math.sin(i / 30_000)
        return 0.3 * swell * Math.sin(i * 0.031 + phase) + 0.1 * Math.sin(i * 0.0713) + 0.02 * swell * hiss[i]!
      }),
    )
    for (const [format, wav] of [
      ['flac', '16'],
      ['flac24', '24'],
    ] as const) {
      const [own, plain] = [await encode(format, music), await encode(wav, music)]
      const bytes = (await readFile(own)).length
      const reference = spawnSync('flac', ['-s', '-5', '-c', plain], { maxBuffer: 50_000_000 }).stdout.length
      expect(bytes / reference).toBeLessThan(1.03)
    }
  },
)

it('a FLAC file with more blocks than one byte can count numbers them correctly', async () => {
  // 2,100 blocks, so that frame numbers take one, two and three bytes.
  const path = join(folder, 'long.flac')
  const encoder = await openEncoder(path, { sampleRate: 44_100, channels: 1, format: 'flac' })
  const block = [sine(4096, 441, 44_100)]
  for (let count = 0; count < 2100; count++) await encoder.write(block)
  await encoder.close()
  const file = await readFile(path)
  const expected = [
    [0, [0x00]],
    [127, [0x7f]],
    [128, [0xc2, 0x80]],
    [2047, [0xdf, 0xbf]],
    [2048, [0xe0, 0xa0, 0x80]],
  ] as const
  for (const [, bytes] of expected) expect(file.includes(Buffer.from([0xff, 0xf8, 0xc9, 0x08, ...bytes]))).toBe(true)
  if (hasFlac) run('flac', ['-s', '-t', '-w', path])
})
