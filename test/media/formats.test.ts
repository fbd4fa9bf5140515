import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import { toStereo } from '../../src/core/media/dsp/stereo.js'
import { collect, readAudio } from '../separation/tracks.js'
import { fixture, signalToNoise, testSignal } from './test-signal.js'

interface Expected {
  format: string
  sampleRate: number
  /** Exact number of samples per channel; formats that state no length keep the encoder's padding. */
  sampleCount: number
  /** Minimum signal-to-noise ratio of each channel against the encoded signal. */
  decibels: number
  isMono?: boolean
}

const lossless = 80
const files: Record<string, Expected> = {
  'stereo.flac': { format: 'flac', sampleRate: 44_100, sampleCount: 44_100, decibels: lossless },
  'stereo-24bit.flac': { format: 'flac', sampleRate: 44_100, sampleCount: 44_100, decibels: lossless },
  'stereo-flac.ogg': { format: 'ogg-flac', sampleRate: 44_100, sampleCount: 44_100, decibels: lossless },
  'alac.m4a': { format: 'mp4', sampleRate: 44_100, sampleCount: 44_100, decibels: lossless },
  'stereo.tta': { format: 'tta', sampleRate: 44_100, sampleCount: 44_100, decibels: lossless },
  'video.mkv': { format: 'mkv', sampleRate: 44_100, sampleCount: 44_100, decibels: lossless },
  'stereo.mp3': { format: 'mp3', sampleRate: 44_100, sampleCount: 44_100, decibels: 48 },
  'mono.mp3': { format: 'mp3', sampleRate: 44_100, sampleCount: 44_100, decibels: 40, isMono: true },
  'vorbis.ogg': { format: 'vorbis', sampleRate: 44_100, sampleCount: 44_100, decibels: 36 },
  'stereo.opus': { format: 'opus', sampleRate: 48_000, sampleCount: 48_000, decibels: 38 },
  'video.webm': { format: 'webm', sampleRate: 48_000, sampleCount: 48_000, decibels: 38 },
  'stereo.m4a': { format: 'mp4', sampleRate: 44_100, sampleCount: 44_100, decibels: 25 },
  'faststart.m4a': { format: 'mp4', sampleRate: 44_100, sampleCount: 44_100, decibels: 25 },
  'fragmented.m4a': { format: 'mp4', sampleRate: 44_100, sampleCount: 45_056, decibels: 25 },
  'mono.m4a': { format: 'mp4', sampleRate: 44_100, sampleCount: 44_100, decibels: 25, isMono: true },
  'video.mp4': { format: 'mp4', sampleRate: 44_100, sampleCount: 44_100, decibels: 25 },
  'video.mov': { format: 'mp4', sampleRate: 44_100, sampleCount: 44_100, decibels: 25 },
  'stereo.aac': { format: 'aac', sampleRate: 44_100, sampleCount: 45_056, decibels: 25 },
  'video.ts': { format: 'mpeg-ts', sampleRate: 44_100, sampleCount: 45_056, decibels: 25 },
  'stereo.caf': { format: 'caf', sampleRate: 8_000, sampleCount: 8_000, decibels: 72 },
  'mu-law.wav': { format: 'wav', sampleRate: 8_000, sampleCount: 8_000, decibels: 34 },
  'adpcm.wav': { format: 'wav', sampleRate: 8_000, sampleCount: 8_136, decibels: 20 },
}

describe('encoded audio', () => {
  it.each(Object.entries(files))(
    '%s decodes to the signal that was encoded, at the same position in time',
    async (name, expected) => {
      const stream = await openAudio(fixture(name))
      const channels = await collect(stream)
      expect({ format: stream.format, sampleRate: stream.sampleRate, channelCount: stream.channelCount }).toEqual({
        format: expected.format,
        sampleRate: expected.sampleRate,
        channelCount: expected.isMono ? 1 : 2,
      })
      expect(channels[0]).toHaveLength(expected.sampleCount)
      const signal = testSignal(expected.sampleRate)
      const ratios = channels.map((plane, channel) => signalToNoise(signal[channel]!, plane))
      expect(Math.min(...ratios)).toBeGreaterThan(expected.decibels)
      expect(stream.readFraction?.()).toBe(1)
    },
  )

  it.each(['stereo.flac', 'stereo-24bit.flac', 'surround.flac'])(
    '%s decodes to exactly the bytes whose MD5 its encoder stored',
    async (name) => {
      const header = await readFile(fixture(name))
      const bits = (((header[20]! & 1) << 4) | (header[21]! >> 4)) + 1
      const { channels } = await readAudio(fixture(name))
      const bytes = Buffer.alloc(channels[0]!.length * channels.length * (bits / 8))
      let at = 0
      for (let i = 0; i < channels[0]!.length; i++) {
        for (const plane of channels) at = bytes.writeIntLE(plane[i]! * 2 ** (bits - 1), at, bits / 8)
      }
      expect(createHash('md5').update(bytes).digest('hex')).toBe(header.subarray(26, 42).toString('hex'))
    },
  )

  it('a stereo MP3 that begins with silence is stereo from its first block', async () => {
    const stream = await openAudio(fixture('late.mp3'))
    const counts = new Set<number>()
    for await (const { channels } of stream.blocks) counts.add(channels.length)
    expect([...counts]).toEqual([2])
  })

  it.each([
    ['stereo.mp2', 44_928],
    ['no-xing.mp3', 46_080],
    ['stereo.ac3', 44_544],
    ['video.avi', 46_080],
    ['stereo.wma', 43_008],
  ])('%s decodes to all of its samples', async (name, sampleCount) => {
    const { channels } = await readAudio(fixture(name))
    expect(channels.map(({ length }) => length)).toEqual([sampleCount, sampleCount])
    const loudest = channels[0]!.reduce(
      (most, sample, index) => (Math.abs(sample) > Math.abs(channels[0]![most]!) ? index : most),
      0,
    )
    expect(Math.abs(loudest / 44_100 - 0.5)).toBeLessThan(0.05)
  })

  const speakers = { left: 300, right: 500, centre: 700, lfe: 60, surroundLeft: 1100, surroundRight: 1300 }

  it.each(['surround.flac', 'surround.ogg', 'surround.opus', 'surround.m4a'])(
    '%s mixes down to stereo with every speaker on the correct side',
    async (name) => {
      const [left, right] = await collect(toStereo(await openAudio(fixture(name))))
      const levels = Object.fromEntries(
        Object.entries(speakers).map(([speaker, hertz]) => [speaker, [tone(left!, hertz), tone(right!, hertz)]]),
      )
      const full = 0.3 / (1 + 2 * Math.SQRT1_2)
      const expected = {
        left: [1, 0],
        right: [0, 1],
        centre: [0.707, 0.707],
        lfe: [0, 0],
        surroundLeft: [0.707, 0],
        surroundRight: [0, 0.707],
      }
      for (const [speaker, gains] of Object.entries(expected)) {
        levels[speaker]!.forEach((level, side) =>
          expect(level / full, `${speaker} ${side}`).toBeCloseTo(gains[side]!, 1),
        )
      }
    },
  )
})

/** Level of a tone at 48 kHz, over whole periods. */
function tone(plane: Float32Array, hertz: number): number {
  let real = 0
  let imaginary = 0
  plane.forEach((sample, index) => {
    real += sample * Math.cos((2 * Math.PI * hertz * index) / 48_000)
    imaginary += sample * Math.sin((2 * Math.PI * hertz * index) / 48_000)
  })
  return (2 * Math.hypot(real, imaginary)) / plane.length
}
