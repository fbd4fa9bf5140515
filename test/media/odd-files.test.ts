import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import { id3Tag } from '../../src/core/media/tags/id3-writer.js'
import { aiffFile, flacFile } from './plain-files.js'
import { hasProgram, runProgram } from './programs.js'
import { fixture } from './test-signal.js'
import { collect, noise } from '../separation/tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

async function file(...parts: Uint8Array[]): Promise<string> {
  const path = join(folder, 'file')
  await writeFile(path, Buffer.concat(parts))
  return path
}

/** The samples, and the warnings about losses. */
async function decode(path: string): Promise<{ channels: Float32Array[]; sampleRate: number; warnings: string[] }> {
  const stream = await openAudio(path)
  const channels = await collect(stream)
  return { channels, sampleRate: stream.sampleRate, warnings: [...(stream.warnings ?? [])] }
}

function chunk(id: string, body: Buffer, size = body.length): Buffer {
  const head = Buffer.alloc(8, id)
  head.writeUInt32LE(size, 4)
  return Buffer.concat([head, body])
}

const samples = Int16Array.from(noise(1000), (value) => value * 40_000)
const data = Buffer.from(samples.buffer)
const format = chunk('fmt ', Buffer.from('0100010044ac00008858010002001000', 'hex'))
const riff = (body: Buffer, size = body.length + 4) => Buffer.concat([chunk('RIFF', Buffer.from('WAVE'), size), body])
const expected = [...samples].map((sample) => sample / 32_768)

describe('WAV', () => {
  it.each<[string, Buffer]>([
    [
      'behind an ID3 tag',
      Buffer.concat([
        Buffer.from('ID3\x03\0\0\0\0\0\x04abcd', 'latin1'),
        riff(Buffer.concat([format, chunk('data', data)])),
      ]),
    ],
    ['with its audio before its format', riff(Buffer.concat([chunk('data', data), format]))],
    ['with a data size of 0 and a right outer size', riff(Buffer.concat([format, chunk('data', data, 0)]))],
    ['with both sizes 0', riff(Buffer.concat([format, chunk('data', data, 0)]), 0)],
    [
      'with a list after its audio',
      riff(Buffer.concat([format, chunk('data', data), chunk('LIST', Buffer.alloc(40))])),
    ],
  ])('%s decodes to its samples', async (_, bytes) => {
    const { channels, warnings } = await decode(await file(bytes))
    expect([...channels[0]!]).toEqual(expected)
    expect(warnings).toEqual([])
  })

  it('says how many of its floats cannot be sound', async () => {
    const floats = Float32Array.of(0.5, NaN, Infinity, -0.25, 1e9, 1.5)
    const fmt = chunk('fmt ', Buffer.from('0300010044ac000010b1020004002000', 'hex'))
    const { channels, warnings } = await decode(
      await file(riff(Buffer.concat([fmt, chunk('data', Buffer.from(floats.buffer))]))),
    )
    expect([...channels[0]!]).toEqual([0.5, 0, 0, -0.25, 0, 1.5])
    expect(warnings).toEqual([expect.stringMatching(/^3 samples were no numbers or far too loud to be real/)])
  })

  it('with MP3 inside, in blocks of one byte, is refused as what it is', async () => {
    const mp3 = chunk('fmt ', Buffer.from('5500020044ac0000803e0000010000000c000100020000004800010071050000', 'hex'))
    const path = await file(riff(Buffer.concat([mp3, chunk('data', await readFile(fixture('stereo.mp3')))])))
    await expect(openAudio(path)).rejects.toMatchObject({ reason: 'unsupported_format' })
  })

  it('with an empty data chunk before a list holds no audio', async () => {
    const path = await file(
      riff(Buffer.concat([format, chunk('data', Buffer.alloc(0)), chunk('LIST', Buffer.alloc(40))])),
    )
    await expect(openAudio(path)).rejects.toMatchObject({ reason: 'no_audio' })
  })
})

describe('AIFF', () => {
  it.each([8, 16, 24, 32])('%d-bit samples are signed and keep their values', async (bits) => {
    const values = [0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 100]
    const { channels } = await decode(await file(aiffFile([values, values.map((value) => ~value)], bits, 48_000)))
    expect([...channels[0]!]).toEqual(values.map((value) => Math.fround(value / 2 ** (bits - 1))))
  })
})

it('AIFF without a sample holds no audio', async () => {
  const path = await file(aiffFile([[], []], 16, 48_000))
  await expect(openAudio(path)).rejects.toMatchObject({ reason: 'no_audio' })
})

describe('AIFF-C', () => {
  it.each(['sowt', '42n1', '42ni'])('%s is little-endian', async (compression) => {
    const bits = compression === 'sowt' ? 16 : 24
    const bytes = Buffer.from([1, 2, 3, 4, 5, 6])
    const plain = aiffFile([Array.from({ length: 48 / bits }, () => 0)], bits, 48_000)
    const common = plain.indexOf('COMM')
    const end = common + 8 + 18
    const named = Buffer.concat([
      plain.subarray(0, end),
      Buffer.from(`${compression}\0\0`),
      plain.subarray(end, -6),
      bytes,
    ])
    named.writeUInt32BE(24, common + 4)
    named.write('AIFC', 8)
    const { channels } = await decode(await file(named))
    const width = bits / 8
    expect(channels[0]![0]).toBe(bytes.readIntLE(0, width) / 2 ** (bits - 1))
  })
})

describe('MP3', () => {
  it('behind 300 KB of zeros and text is found', async () => {
    const song = await readFile(fixture('no-xing.mp3'))
    const { channels } = await decode(await file(Buffer.alloc(200_000), Buffer.alloc(100_000, 'page '), song))
    expect(channels[0]).toHaveLength(46_080)
  })
})

it.skipIf(!hasProgram('ffmpeg'))('WavPack in 5.1 is refused as such (skipped without ffmpeg)', async () => {
  const path = join(folder, 'surround.wv')
  await runProgram('ffmpeg', ['-y', '-f', 'lavfi', '-i', 'sine', '-t', '0.2', '-ac', '6', path])
  await expect(openAudio(path)).rejects.toMatchObject({
    reason: 'unsupported_format',
    message: expect.stringContaining('The file is WavPack with more than two channels.'),
  })
})

describe('FLAC', () => {
  const planes = [1, 2].map((seed) => Int16Array.from(noise(300_000, seed), (value) => value * 40_000))
  const { bytes, frameStarts } = flacFile(planes, 1000)
  const stating = (sampleCount: number) => {
    const copy = Buffer.from(bytes)
    copy.writeUInt32BE(sampleCount, 22)
    return copy
  }

  it.each([
    ['nothing', 0, []],
    ['too little', 10_000, [expect.stringMatching(/states a length of 0\.23 seconds, but 6\.80 were decoded; all/)]],
    ['a sample less', 299_999, []],
    [
      'too much',
      600_000,
      [expect.stringMatching(/states a length of 13\.61 seconds, but 6\.80 were decoded: it was cut/)],
    ],
  ])('whose header states %s of its samples decodes to all that its frames hold', async (_, stated, warnings) => {
    const decoded = await decode(await file(stating(stated)))
    expect(decoded.channels.map(({ length }) => length)).toEqual([300_000, 300_000])
    expect(decoded.channels[1]!.every((sample, index) => sample === planes[1]![index]! / 32_768)).toBe(true)
    expect(decoded.warnings).toEqual(warnings)
  })

  it('that was truncated says how much is missing', async () => {
    const { channels, warnings } = await decode(await file(bytes.subarray(0, frameStarts[130]! + 7)))
    expect(channels[0]).toHaveLength(130_000)
    expect(warnings).toContainEqual(expect.stringMatching(/states a length of 6\.80 seconds, but 2\.95 were decoded/))
  })

  it('with damaged frames says how much is silent', async () => {
    const damaged = Buffer.from(bytes)
    for (const frame of [3, 150, 151]) damaged[frameStarts[frame]! + 500]! ^= 0x10
    const { warnings } = await decode(await file(damaged))
    expect(warnings).toEqual([
      expect.stringMatching(/2 of its parts could not be decoded, and 0\.07 seconds are silent/),
    ])
  })

  it('has the speakers that a comment names', async () => {
    const whole = await readFile(fixture('surround.flac'))
    const masked = (mask: string) => {
      const text = `WAVEFORMATEXTENSIBLE_CHANNEL_MASK=${mask}`
      const comments = Buffer.from([0, 0, 0, 0, 1, 0, 0, 0, text.length, 0, 0, 0, ...Buffer.from(text)])
      // After STREAMINFO.
      return file(whole.subarray(0, 42), Buffer.from([4, 0, 0, comments.length]), comments, whole.subarray(42))
    }
    expect((await openAudio(await masked('0x13F'))).speakers).toBeUndefined()
    expect((await openAudio(await masked('0x707'))).speakers).toEqual([
      'left',
      'right',
      'centre',
      'surroundCentre',
      'surroundLeft',
      'surroundRight',
    ])
  })

  it('in Ogg has the same scale as alone', async () => {
    const { channels } = await decode(fixture('stereo-flac.ogg'))
    const alone = await decode(fixture('stereo.flac'))
    expect(Buffer.compare(Buffer.from(channels[0]!.buffer), Buffer.from(alone.channels[0]!.buffer))).toBe(0)
  })
})

describe('Ogg', () => {
  it.each(['vorbis.ogg', 'stereo.opus', 'stereo-flac.ogg'])(
    'a damaged page of %s produces no noise, and the warnings mention it',
    async (name) => {
      const bytes = Buffer.from(await readFile(fixture(name)))
      const pages: number[] = []
      for (let at = bytes.indexOf('OggS'); at >= 0; at = bytes.indexOf('OggS', at + 4)) pages.push(at)
      const middle = pages[Math.floor(pages.length / 2)]! + 200
      for (let at = middle; at < middle + 60; at++) bytes[at]! ^= 0x55
      const { channels, warnings } = await decode(await file(bytes))
      const sound = await decode(fixture(name))
      const loudest = (plane: Float32Array) => plane.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)
      expect(channels[0]!.length).toBeGreaterThan(1000)
      for (const [index, plane] of channels.entries())
        expect(loudest(plane)).toBeLessThan(loudest(sound.channels[index]!) * 1.1)
      expect(warnings.join(' ')).toMatch(/pages are missing or wrong at 1 position[,.]/)
      expect(channels[0]!.length).toBe(sound.channels[0]!.length)
      // Audio after the gap keeps its position.
      const end = sound.channels[0]!.length
      for (const [index, plane] of channels.entries())
        expect(
          loudest(
            plane.subarray(end - 4000, end - 1000).map((value, i) => value - sound.channels[index]![end - 4000 + i]!),
          ),
        ).toBeLessThan(0.01)
      expect(sound.warnings).toEqual([])
    },
  )

  it('that was cut off says so', async () => {
    const bytes = await readFile(fixture('vorbis.ogg'))
    const { warnings } = await decode(await file(bytes.subarray(0, Math.floor(bytes.length * 0.8))))
    expect(warnings).toContainEqual(expect.stringContaining('no last page'))
  })
})

describe('the missing part', () => {
  it('of an M4A whose index comes first is given in seconds', async () => {
    const bytes = await readFile(fixture('faststart.m4a'))
    const { warnings } = await decode(await file(bytes.subarray(0, Math.floor(bytes.length * 0.6))))
    expect(warnings).toEqual([
      expect.stringMatching(/cut off: \d+\.\d % of its sound is missing, about 0\.\d of 1\.0 seconds/),
    ])
  })

  it('of an MP3 whose header states its length is given in seconds', async () => {
    const bytes = await readFile(fixture('stereo.mp3'))
    const { warnings } = await decode(await file(bytes.subarray(0, Math.floor(bytes.length * 0.5))))
    expect(warnings).toContainEqual(
      expect.stringMatching(/states a length of 1\.0\d seconds, but 0\.\d\d were decoded/),
    )
  })

  it.each<[string, RegExp]>([
    ['stereo.wma', /states a length of 1\.0\d seconds, but 0\.\d\d were decoded: it was cut off/],
    ['fragmented.m4a', /cut off or is damaged: the sound after its last whole fragment is missing/],
    ['stereo.caf', /states a length of 1\.00 seconds, but 0\.60 were decoded: it was cut off/],
    ...['adpcm.wav', 'video.avi', 'video.mkv', 'video.webm'].map((name): [string, RegExp] => [
      name,
      /states a size of \d+ bytes, but has \d+: it was cut off/,
    ]),
  ])('is mentioned where the file was cut off: %s', async (name, warning) => {
    const bytes = await readFile(fixture(name))
    const { warnings } = await decode(await file(bytes.subarray(0, Math.floor(bytes.length * 0.6))))
    expect(warnings).toEqual([expect.stringMatching(warning)])
  })

  // The fixtures of these formats are too short to be cut.
  it.skipIf(!hasProgram('ffmpeg'))('of WavPack and TTA is given in seconds (skipped without ffmpeg)', async () => {
    for (const name of ['cut.wv', 'cut.tta']) {
      const path = join(folder, name)
      await runProgram('ffmpeg', ['-y', '-f', 'lavfi', '-i', 'sine=duration=3', path])
      const bytes = await readFile(path)
      const { warnings } = await decode(await file(bytes.subarray(0, Math.floor(bytes.length * 0.6))))
      expect(warnings).toEqual([expect.stringMatching(/states a length of 3\.00 seconds, but 1\.\d\d were decoded/)])
    }
  })

  it.skipIf(!hasProgram('ffmpeg'))('does not include padding, however long (skipped without ffmpeg)', async () => {
    const path = join(folder, 'padded.mp3')
    await runProgram('ffmpeg', ['-y', '-f', 'lavfi', '-i', 'sine=duration=1.237:r=8000', '-b:a', '64k', path])
    expect((await decode(path)).warnings).toEqual([])
  })

  it.each([0, 0x55])('of an MP3 that states no length is mentioned, in bytes of %i', async (value) => {
    const song = await readFile(fixture('no-xing.mp3'))
    const whole = await decode(await file(song))
    const damaged = await decode(await file(Uint8Array.from(song).fill(value, 2000, 4000)))
    expect(damaged.channels[0]!.length).toBeLessThan(whole.channels[0]!.length)
    expect(damaged.warnings).toEqual([
      expect.stringMatching(/^\d+ bytes in the middle of the MP3 file are no sound and were skipped; .* damaged/),
    ])
    // Tags between joined files are no damage, however long they are.
    const large = id3Tag({ title: 'x'.repeat(300), cover: { contentType: 'image/png', bytes: new Uint8Array(99_999) } })
    const old = Buffer.alloc(128)
    old.write('TAG')
    expect((await decode(await file(song, old, large, song, old))).warnings).toEqual([])
  })

  it('of an M4A whose middle is damaged is mentioned, unless an edit leaves it out', async () => {
    const bytes = await readFile(fixture('faststart.m4a'))
    bytes.fill(0xa5, 8000, 14_000)
    const differs = expect.stringMatching(/states a length of 1\.00 seconds, but 0\.\d\d were decoded/)
    expect((await decode(await file(bytes))).warnings).toContainEqual(differs)
    const whole = await readFile(fixture('faststart.m4a'))
    // The first entry of the list: duration, start.
    whole.writeUInt32BE(22_050, whole.indexOf('elst') + 16)
    const { channels, warnings } = await decode(await file(whole))
    expect(channels[0]!.length).toBeLessThan(30_000)
    expect(warnings).toEqual([])
  })

  it('of a fragmented MP4 whose middle is damaged is mentioned', async () => {
    const bytes = await readFile(fixture('fragmented.m4a'))
    // No box can be that short.
    bytes.writeUInt32BE(3, bytes.indexOf('mfra') - 4)
    const { warnings } = await decode(await file(bytes, bytes.subarray(bytes.indexOf('moof') - 4)))
    expect(warnings).toEqual([expect.stringContaining('after its last whole fragment is missing')])
  })

  const undamaged = ['flac', 'mp3', 'opus', 'm4a', 'caf', 'tta', 'wma', 'aac'].map((extension) => `stereo.${extension}`)
  const videos = ['mkv', 'webm', 'avi', 'mp4', 'mov'].map((extension) => `video.${extension}`)
  it.each([...undamaged, ...videos, 'vorbis.ogg', 'fragmented.m4a', 'alac.m4a', 'mono.wv', 'adpcm.wav'])(
    'is not mentioned if nothing is missing: %s',
    async (name) => {
      expect((await decode(fixture(name))).warnings).toEqual([])
    },
  )
})
