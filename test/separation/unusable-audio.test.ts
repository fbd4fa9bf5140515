import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import { withChecksum } from '../media/ogg-file.js'
import { flacFile, aiffFile } from '../media/plain-files.js'
import { fixture } from '../media/test-signal.js'
import { noise, readAudio, writeWav } from './tracks.js'
import { wavFile } from './wav-file.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

async function file(bytes: Uint8Array | string): Promise<string> {
  const path = join(folder, 'file')
  await writeFile(path, bytes)
  return path
}

function randomBytes(count: number, seed = 1): Buffer {
  return Buffer.from(noise(count, seed).map((value) => (value + 0.5) * 256))
}

const notAudio: Record<string, Buffer | string> = {
  'plain text': 'hello world, this is not audio\n'.repeat(50),
  'an HTML page': '\n<!DOCTYPE html><html><head><title>404</title></head><body>Not Found</body></html>',
  JSON: '{"error": "not found"}',
  XML: '<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>',
  'an M3U playlist': '#EXTM3U\n#EXTINF:123,Song\nhttp://example.com/song.mp3\n',
  'a bare M3U playlist': 'http://example.com/song.mp3\nhttp://example.com/other.mp3\n',
  'a PLS playlist': '[playlist]\nFile1=http://example.com/song.mp3\nNumberOfEntries=1\n',
  'an XSPF playlist':
    '<?xml version="1.0" encoding="UTF-8"?>\n<playlist version="1" xmlns="http://xspf.org/ns/0/"></playlist>',
  'a cue sheet': 'PERFORMER "Someone"\nTITLE "Album"\nFILE "album.wav" WAVE\n  TRACK 01 AUDIO\n',
  'a multipart form': '--boundary123\r\nContent-Disposition: form-data; name="filedata"; filename="a.mp3"\r\n\r\n',
  'a PNG image': Buffer.from('89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489', 'hex'),
  'a JPEG image': Buffer.from('ffd8ffe000104a46494600010100000100010000', 'hex'),
  'a WebP image': 'RIFF\x1a\0\0\0WEBPVP8L\r\0\0\0',
  'an AVIF image': '\0\0\0\x20ftypavif\0\0\0\0avifmif1miaf',
  'a ZIP archive': 'PK\x03\x04\x14\0\0\0\x08\0',
  'a PDF': '%PDF-1.7\n%\xe2\xe3',
  'a MIDI file': 'MThd\0\0\0\x06\0\x01\0\x02\x01\xe0',
  zeros: Buffer.alloc(1 << 20),
  'random bytes': randomBytes(1 << 20),
  'one byte': 'x',
}

describe('what is not audio', () => {
  it.each(Object.entries(notAudio))('%s is refused as unsupported_format', async (_, bytes) => {
    const path = await file(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
    await expect(openAudio(path)).rejects.toMatchObject({
      code: 'BAD_INPUT',
      reason: 'unsupported_format',
      retryable: false,
    })
  })

  it.each(['refused-free-format.mp3', 'refused-video.wmv', 'refused.spx'])(
    '%s, which the decoders would mangle, is refused by its format',
    async (name) => {
      await expect(openAudio(fixture(name))).rejects.toMatchObject({
        reason: 'unsupported_format',
        message: expect.not.stringContaining('not audio in any known format'),
      })
    },
  )

  it("a playlist's and a web page's refusal say what they are", async () => {
    await expect(openAudio(await file('#EXTM3U\nsong.mp3\n'))).rejects.toThrow(/playlist/)
    await expect(openAudio(await file('<html></html>'))).rejects.toThrow(/HTML page/)
  })
})

describe('audio files without audio', () => {
  it.each([
    ['an empty file', async () => file('')],
    ['a WAV file with an empty data chunk', async () => file(wavFile({ tag: 1, bits: 16, data: Buffer.alloc(0) }))],
    ['a video without sound', async () => fixture('no-sound.mp4')],
  ])('%s is refused as no_audio', async (_, path) => {
    await expect(openAudio(await path())).rejects.toMatchObject({ code: 'BAD_INPUT', reason: 'no_audio' })
  })
})

const encoded = [
  'stereo.mp3',
  'stereo.flac',
  'stereo-flac.ogg',
  'vorbis.ogg',
  'stereo.opus',
  'stereo.m4a',
  'faststart.m4a',
  'fragmented.m4a',
  'stereo.aac',
  'stereo.wma',
  'video.mp4',
  'video.webm',
  'video.mkv',
  'video.avi',
  'alac.m4a',
  'stereo.tta',
  'stereo.ac3',
]
/** Without their index at the end, or as a single frame, these files cannot be used in part. */
const indivisible = new Set(['stereo.m4a', 'video.mp4', 'alac.m4a', 'stereo.tta'])

describe('damaged audio', () => {
  it.each([
    'RIFF\x24\0\0\0WAVE',
    'RIFF\x24\0\0\0WAVEdata\x10\0\0\0',
    'ID3\x03\0\0\0\0\0\x0a\0\0\0\0\0\0\0\0\0\0',
    'fLaC',
    '\0\0\0\x18ftypM4A ',
  ])('%j alone is refused as decode_failed', async (bytes) => {
    await expect(openAudio(await file(Buffer.from(bytes, 'latin1')))).rejects.toMatchObject({
      code: 'BAD_INPUT',
      reason: 'decode_failed',
    })
  })

  it.each(encoded)('the first 200 bytes of %s are refused as decode_failed', async (name) => {
    const bytes = await readFile(fixture(name))
    await expect(openAudio(await file(bytes.subarray(0, 200)))).rejects.toMatchObject({
      code: 'BAD_INPUT',
      reason: 'decode_failed',
      message: expect.stringMatching(/Send a complete copy of the file\.$/),
    })
  })

  it.each(encoded)('the first three quarters of %s decode to what is left', async (name) => {
    const bytes = await readFile(fixture(name))
    const truncated = file(bytes.subarray(0, Math.floor(bytes.length * 0.75))).then(readAudio)
    if (indivisible.has(name)) {
      await expect(truncated).rejects.toMatchObject({ code: 'BAD_INPUT', reason: 'decode_failed' })
      return
    }
    const { channels, sampleRate } = await truncated
    expect(channels[0]!.length / sampleRate).toBeGreaterThan(0.1)
    expect(channels[0]!.length / sampleRate).toBeLessThan(1)
  })

  it.each(encoded)('%s with random bytes in the middle fifth ends in sane audio or decode_failed', async (name) => {
    const bytes = Buffer.from(await readFile(fixture(name)))
    randomBytes(Math.floor(bytes.length / 5), 3).copy(bytes, Math.floor(bytes.length * 0.4))
    const outcome = await readAudio(await file(bytes)).catch((error: unknown) => error)
    if (outcome instanceof Error) {
      expect(outcome).toMatchObject({ code: 'BAD_INPUT', reason: 'decode_failed' })
      return
    }
    const { channels, sampleRate } = outcome as Awaited<ReturnType<typeof readAudio>>
    expect(channels).toHaveLength(2)
    expect(channels[0]!.length / sampleRate).toBeLessThan(1.5)
    for (const plane of channels) expect(plane.every((sample) => Math.abs(sample) <= 8)).toBe(true)
  })

  it.each(encoded)('%s with random bytes as its header is refused or still sane', async (name) => {
    const bytes = Buffer.from(await readFile(fixture(name)))
    randomBytes(384, 4).copy(bytes, 16)
    const outcome = await readAudio(await file(bytes)).catch((error: unknown) => error)
    if (outcome instanceof Error)
      expect(outcome).toMatchObject({
        code: 'BAD_INPUT',
        reason: expect.stringMatching(/decode_failed|unsupported_format/),
      })
    else expect((outcome as Awaited<ReturnType<typeof readAudio>>).channels[0]!.length).toBeGreaterThan(0)
  })
})

describe('FLAC', () => {
  const samples = Array.from({ length: 2 }, (_, channel) =>
    Int16Array.from(noise(300_000, channel + 1), (value) => value * 40_000),
  )
  const blockSize = 1000
  const { bytes, frameStarts } = flacFile(samples, blockSize)

  it('a long stream keeps every frame, wherever the pieces that are read happen to end', async () => {
    const { channels } = await readAudio(await file(bytes))
    expect(
      channels.map(
        (plane, channel) =>
          plane.length === 300_000 && plane.every((sample, index) => sample === samples[channel]![index]! / 32_768),
      ),
    ).toEqual([true, true])
  })

  it('damaged frames become silence of the same length, and what follows stays in time', async () => {
    const damaged = Buffer.from(bytes)
    for (const frame of [3, 150, 151]) damaged[frameStarts[frame]! + 500]! ^= 0x10
    const { channels } = await readAudio(await file(damaged))
    const wrong = [...channels[0]!.keys()].filter((index) => channels[0]![index] !== samples[0]![index]! / 32_768)
    expect(new Set(wrong.map((index) => Math.floor(index / blockSize)))).toEqual(new Set([3, 150, 151]))
    expect(channels[0]!.subarray(150_000, 152_000).every((sample) => sample === 0)).toBe(true)
    expect(channels[0]).toHaveLength(300_000)
  })

  it('an ID3 tag before it is stepped over', async () => {
    const tag = Buffer.concat([Buffer.from('ID3\x04\0\0\0\0\x02\0', 'latin1'), Buffer.alloc(256)])
    const { channels } = await readAudio(await file(Buffer.concat([tag, bytes])))
    expect(channels[0]).toHaveLength(300_000)
  })
})

describe('AIFF', () => {
  it.each([16, 24])('%d-bit samples decode exactly', async (bits) => {
    const values = [0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 12_345]
    const { channels, sampleRate } = await readAudio(
      await file(aiffFile([values, values.map((value) => ~value)], bits, 48_000)),
    )
    expect(sampleRate).toBe(48_000)
    expect([...channels[0]!]).toEqual(values.map((value) => value / 2 ** (bits - 1)))
    expect([...channels[1]!]).toEqual(values.map((value) => ~value / 2 ** (bits - 1)))
  })
})

describe('length', () => {
  it.each(['stereo.flac', 'stereo.mp3', 'vorbis.ogg', 'stereo.opus', 'stereo.m4a'])(
    '%s is refused as too_long when it is opened, if its header and its audio say so',
    async (name) => {
      await expect(openAudio(fixture(name), { maxSeconds: 0.5 })).rejects.toMatchObject({
        code: 'BAD_INPUT',
        reason: 'too_long',
      })
      await expect(openAudio(fixture(name), { maxSeconds: 1.05 })).resolves.toBeDefined()
    },
  )

  it.each(['stereo.flac', 'stereo.mp3', 'vorbis.ogg', 'stereo.opus', 'stereo.m4a'])(
    '%s, whose header states hours, is read to its end, with a warning',
    async (name) => {
      const { channels } = await readAudio(fixture(name))
      const overstated = await file(overstate(name, await readFile(fixture(name))))
      const stream = await openAudio(overstated, { maxSeconds: 600 })
      let sampleCount = 0
      for await (const block of stream.blocks) sampleCount += block.channels[0]!.length
      // The encoder's padding is included: only the length would have excluded it.
      expect(sampleCount).toBeGreaterThanOrEqual(channels[0]!.length)
      expect(sampleCount).toBeLessThan(channels[0]!.length + 2000)
      // Files of one second: the others have the lengths of a broadcast joined late, and of a track.
      if (/flac|mp3/.test(name)) expect(stream.warnings).toEqual([expect.stringMatching(/states a length of \d{4,}/)])
    },
  )

  it('WAV and AIFF are refused as too_long by their headers', async () => {
    await writeWav(join(folder, 'two-seconds.wav'), [noise(88_200)], 44_100)
    await expect(openAudio(join(folder, 'two-seconds.wav'), { maxSeconds: 1.9 })).rejects.toMatchObject({
      reason: 'too_long',
    })
    await expect(openAudio(join(folder, 'two-seconds.wav'), { maxSeconds: 2 })).resolves.toBeDefined()
    const aiff = await file(aiffFile([Array<number>(48_000).fill(0)], 16, 48_000))
    await expect(openAudio(aiff, { maxSeconds: 0.5 })).rejects.toMatchObject({ reason: 'too_long' })
  })

  it('audio whose header says nothing is refused as soon as too much is decoded', async () => {
    const stream = await openAudio(fixture('no-xing.mp3'), { maxSeconds: 0.9 })
    const reading = (async () => {
      for await (const { channels } of stream.blocks) expect(channels).toHaveLength(2)
    })()
    await expect(reading).rejects.toMatchObject({ code: 'BAD_INPUT', reason: 'too_long' })
  })

  it('a header that promises less than the file holds does not get more past the limit', async () => {
    const bytes = Buffer.from(await readFile(fixture('stereo.mp3')))
    const frameCountOffset =
      bytes.indexOf(/Xing|Info/.exec(bytes.toString('latin1', 0, 200))?.[0] ?? '', 0, 'latin1') + 8
    bytes.writeUInt32BE(2, frameCountOffset)
    const reading = openAudio(await file(bytes), { maxSeconds: 0.5 }).then(async ({ blocks }) => {
      let sampleCount = 0
      for await (const { channels } of blocks) sampleCount += channels[0]!.length
      return sampleCount
    })
    const outcome = await reading.catch((error: unknown) => error)
    if (typeof outcome === 'number') expect(outcome).toBeLessThanOrEqual(22_050)
    else expect(outcome).toMatchObject({ reason: 'too_long' })
  })
})

describe('giving up', () => {
  it.each(['stereo.mp3', 'stereo.flac', 'stereo.m4a'])(
    "an abort ends the reading of %s with the signal's reason",
    async (name) => {
      const reason = new Error('no longer wanted')
      await expect(openAudio(fixture(name), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
      const controller = new AbortController()
      const { blocks } = await openAudio(fixture(name), { signal: controller.signal })
      controller.abort(reason)
      await expect(blocks[Symbol.asyncIterator]().next()).rejects.toBe(reason)
    },
  )

  it("an abort while a codec waits for more of the file is not taken for the file's end", async () => {
    const reason = new Error('no longer wanted')
    const controller = new AbortController()
    const { blocks } = await openAudio(fixture('stereo.opus'), { signal: controller.signal })
    const iterator = blocks[Symbol.asyncIterator]()
    await iterator.next()
    const next = iterator.next()
    controller.abort(reason)
    await expect(next).rejects.toBe(reason)
  })
})

/** The file with a header, or a last page, that claims several hours. */
function overstate(name: string, bytes: Buffer): Buffer {
  const samples = 5 * 3600 * 48_000
  if (name.endsWith('.flac')) bytes.writeUInt32BE(samples, 22)
  else if (name.endsWith('.mp3'))
    bytes.writeUInt32BE(samples / 1152, bytes.indexOf(/Xing|Info/.exec(bytes.toString('latin1', 0, 400))![0]) + 8)
  else if (name.endsWith('.m4a')) {
    const header = bytes.indexOf('mdhd')
    bytes.writeUInt32BE(samples, header + 4 + 16)
  } else {
    const page = bytes.lastIndexOf('OggS')
    bytes.writeBigUInt64LE(BigInt(samples), page + 6)
    withChecksum(bytes.subarray(page))
  }
  return bytes
}
