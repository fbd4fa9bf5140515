import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import { noise, readAudio } from '../separation/tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

const hasFfmpeg = spawnSync('ffmpeg', ['-version']).error === undefined

async function encode(planes: Float32Array[], sampleRate = 44_100): Promise<string> {
  const path = join(folder, 'signal.mp3')
  const encoder = await openEncoder(path, { sampleRate, channels: planes.length, format: 'mp3' })
  for (let start = 0; start < planes[0]!.length; start += 1000)
    await encoder.write(planes.map((plane) => plane.subarray(start, start + 1000)))
  await encoder.close()
  return path
}

/** The file decoded by ffmpeg, interleaved. Any warning of ffmpeg is an error here. */
function decoded(path: string): Float32Array {
  const { stdout, stderr } = spawnSync('ffmpeg', ['-v', 'warning', '-i', path, '-f', 'f32le', '-'], {
    maxBuffer: 50_000_000,
  })
  expect(String(stderr)).toBe('')
  return new Float32Array(stdout.buffer, stdout.byteOffset, stdout.length / 4)
}

function decibels(planes: readonly Float32Array[], found: Float32Array): number {
  let [signal, error] = [0, 0]
  planes.forEach((plane, channel) =>
    plane.forEach((value, i) => {
      signal += value * value
      error += (value - found[i * planes.length + channel]!) ** 2
    }),
  )
  return 10 * Math.log10(signal / error)
}

const length = 44_100
const music = (seed: number) => {
  const hiss = noise(length, seed)
  return Float32Array.from({ length }, (_, i) => {
    const beat = Math.exp(-(i % 11_025) / 900)
    return 0.2 * Math.sin(i * 0.031 * seed) + 0.1 * Math.sin(i * 0.117) + (0.3 * beat + 0.01) * hiss[i]!
  })
}
/** Minimum signal-to-noise ratios, in decibels. */
const signals: Record<string, [() => Float32Array[], number]> = {
  'music with beats': [() => [music(1), music(2)], 24],
  'equal channels': [() => [music(1), music(1)], 30],
  'opposite channels': [() => [music(1), music(1).map((value) => -value)], 30],
  'one channel of two': [() => [music(1), new Float32Array(length)], 30],
  'a single channel': [() => [music(1)], 30],
  'the loudest noise': [() => [noise(length, 1), noise(length, 2)], 10],
  'a tone at full scale': [() => [Float32Array.from({ length }, (_, i) => Math.sin(i * 0.05))], 70],
  'a tone that is hardly there': [() => [Float32Array.from({ length }, (_, i) => 1e-4 * Math.sin(i * 0.05))], 40],
  'a tone of 19 kHz': [
    () => [Float32Array.from({ length }, (_, i) => 0.1 * Math.sin((i * 2 * Math.PI * 19) / 44.1))],
    40,
  ],
}

describe.skipIf(!hasFfmpeg)('ffmpeg decodes without a warning (skipped where it is not installed)', () => {
  it.each(Object.entries(signals))('%s', async (_, [planes, least]) => {
    for (const sampleRate of [44_100, 48_000, 32_000]) {
      const signal = planes()
      const found = decoded(await encode(signal, sampleRate))
      expect(found.length).toBe(length * signal.length)
      expect(decibels(signal, found)).toBeGreaterThan(least)
    }
  })

  it('samples that are not numbers as silence or at full scale', async () => {
    const planes = [
      [NaN, Infinity, -Infinity, 1e30, 0],
      [0, 0, 0, 0, 0],
    ].map((values) => Float32Array.from({ length: 20_000 }, (__, i) => values[i % 5]!))
    expect(decoded(await encode(planes)).every((value) => Number.isFinite(value))).toBe(true)
  })

  it('silence before a sound begins', async () => {
    // A click: with one transform for a whole granule, its noise would begin 13 ms early.
    const planes = [new Float32Array(length).fill(0).map((_, i) => (i >= 20_000 && i < 20_200 ? (i % 7) / 7 : 0))]
    const found = decoded(await encode(planes))
    const before = found.subarray(20_000 - 576, 20_000 - 256)
    expect(Math.max(...before.map(Math.abs))).toBeLessThan(1e-3)
  })
})

it('every frame has 320 kbit/s, with a padding byte if that is not a whole number of bytes', async () => {
  for (const [sampleRate, bytes] of [
    [44_100, (320_000 / 8) * (1152 / 44_100)],
    [48_000, 960],
    [32_000, 1440],
  ] as const) {
    const file = await readFile(await encode([music(1), music(2)], sampleRate))
    let [at, frames] = [0, 0]
    for (; at < file.length; frames++) {
      expect(file.readUInt16BE(at)).toBe(0xfffb)
      at += Math.floor(bytes) + ((file[at + 2]! >> 1) & 1)
    }
    expect(at).toBe(file.length)
    expect(Math.abs(file.length - frames * bytes)).toBeLessThan(2)
  }
})

it('the decoder of this package finds every sample in its place', async () => {
  const planes = [music(1), music(2)]
  const { channels } = await readAudio(await encode(planes))
  const interleaved = Float32Array.from({ length: 2 * length }, (_, i) => channels[i % 2]![i >> 1]!)
  expect(channels[0]!.length).toBe(length)
  expect(decibels(planes, interleaved)).toBeGreaterThan(24)
})

it('an unsupported sample rate is an error that names the supported ones', async () => {
  await expect(
    openEncoder(join(folder, 'low.mp3'), { sampleRate: 22_050, channels: 2, format: 'mp3' }),
  ).rejects.toThrow(/44100, 48000, 32000 Hz, not 2 at 22050 Hz/)
})
