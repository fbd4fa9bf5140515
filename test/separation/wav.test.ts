import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import { toStereo } from '../../src/core/media/dsp/stereo.js'
import { openWavWriter } from '../../src/core/media/encode/wav-writer.js'
import { collect, joined, noise, readAudio, streamOf, writeWav } from './tracks.js'
import { wavFile } from './wav-file.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

async function read(bytes: Uint8Array) {
  const path = join(folder, 'read.wav')
  await writeFile(path, bytes)
  return readAudio(path)
}

/** Interleaved stereo samples -full..full-1 in steps that cross zero, as the given writer stores them. */
const left = [0, 1, -1, 0.5, -0.5, 0.999, -1]
const right = [0.25, -0.25, 0, 0.125, -0.125, 0, 0.75]

function samples(bytesPerSample: number, write: (bytes: Buffer, value: number, at: number) => void): Buffer {
  const bytes = Buffer.alloc(left.length * 2 * bytesPerSample)
  left.forEach((_, index) =>
    [left[index], right[index]].forEach((value, channel) =>
      write(bytes, value!, (index * 2 + channel) * bytesPerSample),
    ),
  )
  return bytes
}

function integer(value: number, bits: number): number {
  return Math.max(-(2 ** (bits - 1)), Math.min(2 ** (bits - 1) - 1, Math.round(value * 2 ** (bits - 1))))
}

const encodings = [
  {
    name: '8-bit',
    bits: 8,
    tag: 1,
    data: samples(1, (bytes, value, at) => bytes.writeUInt8(integer(value, 8) + 128, at)),
  },
  {
    name: '16-bit',
    bits: 16,
    tag: 1,
    data: samples(2, (bytes, value, at) => bytes.writeInt16LE(integer(value, 16), at)),
  },
  {
    name: '24-bit',
    bits: 24,
    tag: 1,
    data: samples(3, (bytes, value, at) => bytes.writeIntLE(integer(value, 24), at, 3)),
  },
  {
    name: '32-bit',
    bits: 32,
    tag: 1,
    data: samples(4, (bytes, value, at) => bytes.writeInt32LE(integer(value, 32), at)),
  },
  { name: '32-bit float', bits: 32, tag: 3, data: samples(4, (bytes, value, at) => bytes.writeFloatLE(value, at)) },
  { name: '64-bit float', bits: 64, tag: 3, data: samples(8, (bytes, value, at) => bytes.writeDoubleLE(value, at)) },
]

describe('reading WAV', () => {
  it.each(encodings)('$name samples are scaled by two to the power of their width', async ({ bits, tag, data }) => {
    const { channels } = await read(wavFile({ tag, bits, data }))
    const exact = (value: number) => Math.fround(tag === 3 ? value : integer(value, bits) / 2 ** (bits - 1))
    expect([...channels[0]!]).toEqual(left.map(exact))
    expect([...channels[1]!]).toEqual(right.map(exact))
  })

  it.each(encodings)(
    '$name samples are read from WAVE_FORMAT_EXTENSIBLE and from RF64, too',
    async ({ bits, tag, data }) => {
      const plain = await read(wavFile({ tag, bits, data }))
      expect(await read(wavFile({ tag, bits, data, isExtensible: true }))).toEqual(plain)
      expect(await read(wavFile({ tag, bits, data, outer: 'RF64' }))).toEqual(plain)
      expect(await read(wavFile({ tag, bits, data, outer: 'BW64' }))).toEqual(plain)
    },
  )

  it('chunks of odd length before the data are stepped over', async () => {
    const { data } = encodings[1]!
    const { channels } = await read(
      wavFile({
        tag: 1,
        bits: 16,
        data,
        before: [
          ['LIST', Buffer.from('abc')],
          ['bext', Buffer.alloc(7)],
        ],
      }),
    )
    expect(channels[0]).toHaveLength(left.length)
  })

  it.each([
    ['0', 0, 0],
    ['0 with an outer size that was not updated either', 36, 0],
    ['0xffffffff', 0xffff_ffff, 0xffff_ffff],
    ['more than the file holds', 0x7fff_f000, 0x7fff_f000],
  ])('a streamed file whose data size is %s is read to its end', async (_, riffBytes, dataBytes) => {
    const { channels } = await read(wavFile({ tag: 1, bits: 16, data: encodings[1]!.data, riffBytes, dataBytes }))
    expect(channels[0]).toHaveLength(left.length)
  })

  it('a truncated file gives the complete samples that are left', async () => {
    const whole = wavFile({ tag: 1, bits: 16, data: encodings[1]!.data })
    const { channels } = await read(whole.subarray(0, whole.length - 6))
    expect([...channels[0]!]).toHaveLength(left.length - 2)
  })

  it('an empty data chunk followed by notes is no audio: the notes are not played', async () => {
    const bytes = wavFile({ tag: 1, bits: 16, data: Buffer.alloc(0), after: [['LIST', Buffer.alloc(64, 'x')]] })
    await expect(read(bytes)).rejects.toMatchObject({ code: 'BAD_INPUT', reason: 'no_audio' })
  })

  it('infinities and absurd numbers in a float file become silence', async () => {
    const data = Buffer.alloc(5 * 4)
    ;[Infinity, NaN, 1e30, -3, 0.5].forEach((value, index) => data.writeFloatLE(value, index * 4))
    const { channels } = await read(wavFile({ tag: 3, bits: 32, channels: 1, data }))
    expect([...channels[0]!]).toEqual([0, 0, 0, -3, 0.5])
  })

  it('the speakers of WAVE_FORMAT_EXTENSIBLE decide how channels are mixed', async () => {
    const data = Buffer.alloc(2 * 3)
    ;[0.5, 0.25, 0.125].forEach((value, index) => data.writeInt16LE(value * 32_768, index * 2))
    // Front left, LFE, back centre.
    await writeFile(
      join(folder, 'speakers.wav'),
      wavFile({ tag: 1, bits: 16, channels: 3, data, isExtensible: true, channelMask: 0x1 | 0x8 | 0x100 }),
    )
    const [mixedLeft, mixedRight] = await collect(toStereo(await openAudio(join(folder, 'speakers.wav'))))
    expect(mixedLeft![0]!).toBeCloseTo((0.5 + 0.5 * 0.125) / 1.5, 6)
    expect(mixedRight![0]!).toBeCloseTo((0.5 * 0.125) / 1.5, 6)
  })
})

describe('writing WAV', () => {
  it.each([
    ['16', 16],
    ['24', 24],
  ] as const)(
    'a %s-bit file that is read and written again has the same samples, byte for byte',
    async (format, bits) => {
      const data = Buffer.alloc(65_536 * 2 * (bits / 8))
      // All possible 16-bit values, in both channels.
      for (let index = 0; index < 65_536 * 2; index++) {
        data.writeIntLE(
          (((index >> 1) - 32_768) * (bits === 24 ? 256 : 1)) | (bits === 24 ? index & 255 : 0),
          index * (bits / 8),
          bits / 8,
        )
      }
      await writeFile(join(folder, 'in.wav'), wavFile({ tag: 1, bits, data }))
      const { channels } = await readAudio(join(folder, 'in.wav'))
      await writeWav(join(folder, 'out.wav'), channels, 44_100, format)
      const written = await readFile(join(folder, 'out.wav'))
      expect(written.subarray(written.length - data.length).equals(data)).toBe(true)
    },
  )

  it('a float file keeps every bit, even beyond full scale', async () => {
    const plane = noise(1000).map((sample) => sample * 7)
    await writeWav(join(folder, 'float.wav'), [plane], 48_000)
    const { sampleRate, channels } = await readAudio(join(folder, 'float.wav'))
    expect(sampleRate).toBe(48_000)
    expect(channels).toEqual([plane])
  })

  it.each(['16', '24', '32f'] as const)(
    "a %s file's length, sample count and sizes agree with what the header says",
    async (format) => {
      const path = join(folder, 'sizes.wav')
      const writer = await openWavWriter(path, { sampleRate: 44_100, channels: 1, format })
      await writer.write([noise(501)])
      await writer.write([noise(500)])
      const written = await writer.close()
      const bytes = await readFile(path)
      const width = { '16': 2, '24': 3, '32f': 4 }[format]
      expect(written).toEqual({ sampleCount: 1001, clippedSamples: 0, bytes: bytes.length })
      expect(bytes.readUInt32LE(4)).toBe(bytes.length - 8)
      const data = bytes.indexOf('data', 0, 'latin1')
      expect(bytes.readUInt32LE(data + 4)).toBe(1001 * width)
      expect(bytes.length).toBe(data + 8 + Math.ceil((1001 * width) / 2) * 2)
      if (format === '32f') expect(bytes.readUInt32LE(bytes.indexOf('fact', 0, 'latin1') + 8)).toBe(1001)
    },
  )

  it('integers beyond full scale are clipped and counted, never wrapped', async () => {
    const path = join(folder, 'clipped.wav')
    const writer = await openWavWriter(path, { sampleRate: 44_100, channels: 2, format: '16' })
    await writer.write([Float32Array.of(1.5, -1.5, 0.5, -1), Float32Array.of(1, 32_767 / 32_768, 0, 7)])
    expect(await writer.close()).toMatchObject({ clippedSamples: 4 })
    const { channels } = await readAudio(path)
    expect(channels.map((plane) => [...plane].map((sample) => sample * 32_768))).toEqual([
      [32_767, -32_768, 16_384, -32_768],
      [32_767, 32_767, 0, 32_767],
    ])
  })

  it('past the size limit of RIFF the file becomes RF64, with sizes of 64 bits and the same audio', async () => {
    const path = join(folder, 'long.wav')
    const planes = [noise(2000), noise(2000, 2)]
    const writer = await openWavWriter(path, { sampleRate: 44_100, channels: 2, format: '16', maxRiffBytes: 4096 })
    await writer.write(planes)
    await writer.close()
    const bytes = await readFile(path)
    expect(bytes.toString('latin1', 0, 4) + bytes.toString('latin1', 8, 16)).toBe('RF64WAVEds64')
    expect(bytes.readUInt32LE(4)).toBe(0xffff_ffff)
    expect(bytes.readUInt32LE(16)).toBe(28)
    expect(bytes.readBigUInt64LE(20)).toBe(BigInt(bytes.length - 8))
    expect(bytes.readBigUInt64LE(28)).toBe(8000n)
    expect(bytes.readBigUInt64LE(36)).toBe(2000n)
    expect(bytes.readUInt32LE(bytes.indexOf('data', 0, 'latin1') + 4)).toBe(0xffff_ffff)
    expect((await readAudio(path)).channels[0]).toHaveLength(2000)
  })

  it('without audio the file is a complete, empty WAV file', async () => {
    const path = join(folder, 'empty.wav')
    const writer = await openWavWriter(path, { sampleRate: 44_100, channels: 2, format: '16' })
    expect(await writer.close()).toEqual({ sampleCount: 0, clippedSamples: 0, bytes: (await stat(path)).size })
    await expect(openAudio(path)).rejects.toMatchObject({ reason: 'no_audio' })
  })
})

describe('stereo', () => {
  it('mono becomes the same on both sides, in planes of their own', async () => {
    const mono = noise(5000)
    const [first, second] = await collect(toStereo(streamOf([mono])))
    expect(first).toEqual(mono)
    expect(second).toEqual(mono)
    for await (const { channels } of toStereo(streamOf([mono])).blocks)
      expect(channels[0]!.buffer).not.toBe(channels[1]!.buffer)
  })

  it('stereo passes unchanged', () => {
    const stream = streamOf([noise(10), noise(10)])
    expect(toStereo(stream)).toBe(stream)
  })

  it.each([3, 4, 5, 6, 7, 8, 12])('%d channels at full scale mix down to full scale at most', async (count) => {
    const planes = Array.from({ length: count }, () => joined([new Float32Array(100).fill(1)]))
    const mixed = await collect(toStereo(streamOf(planes)))
    expect(Math.max(...mixed[0]!, ...mixed[1]!)).toBeCloseTo(1, 6)
  })
})
