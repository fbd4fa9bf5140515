import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import { collect, maxDifference } from '../separation/tracks.js'
import { temporaryFolder } from '../temporary-folder.js'
import { hasProgram, runProgram } from './programs.js'
import { fixture } from './test-signal.js'

const folder = temporaryFolder()

/** Formats whose decoders return two channels for mono, or one for two equal ones. */
const formats: Record<string, string[]> = {
  'lame.mp3': ['-c:a', 'libmp3lame'],
  'plain.mp3': ['-c:a', 'libmp3lame', '-write_xing', '0', '-id3v2_version', '0'],
  'low.mp3': ['-c:a', 'libmp3lame', '-ar', '16000'],
  'layer2.mp2': ['-c:a', 'mp2', '-b:a', '96k'],
  'adts.aac': ['-c:a', 'aac'],
  'mpeg.ts': ['-c:a', 'libmp3lame'],
  'adts.ts': ['-c:a', 'aac'],
  'aac.m4a': ['-c:a', 'aac'],
  'fragmented.m4a': ['-c:a', 'aac', '-movflags', 'frag_keyframe+empty_moov'],
  'low.m4a': ['-c:a', 'aac', '-ar', '16000'],
  'alac.m4a': ['-c:a', 'alac'],
  'mp3.mp4': ['-c:a', 'libmp3lame'],
  'opus.mp4': ['-c:a', 'libopus'],
  'flac.mp4': ['-c:a', 'flac', '-strict', '-2'],
  'aac.mov': ['-c:a', 'aac'],
  'mp3.mov': ['-c:a', 'libmp3lame'],
  'pcm.mov': ['-c:a', 'pcm_s16le'],
  'deep.mov': ['-c:a', 'pcm_f64le'],
  'aac.mkv': ['-c:a', 'aac'],
  'mp3.mkv': ['-c:a', 'libmp3lame'],
  'pcm.mkv': ['-c:a', 'pcm_s16le'],
  'opus.mkv': ['-c:a', 'libopus'],
  'mp3.avi': ['-c:a', 'libmp3lame'],
  'pcm.avi': ['-c:a', 'pcm_s16le'],
  'first.wma': ['-c:a', 'wmav1'],
  'second.wma': ['-c:a', 'wmav2'],
}

describe.skipIf(!hasProgram('ffmpeg'))('the number of channels (needs ffmpeg)', () => {
  const names = (name: string) => [`1-${name}`, `2-${name}`]

  beforeAll(async () => {
    const outputs = Object.entries(formats).flatMap(([name, codec]) =>
      names(name).flatMap((file, i) => ['-ac', String(i + 1), ...codec, join(folder, file)]),
    )
    await runProgram('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', 'sine=440:d=1:r=48000', ...outputs])
  })

  it.each(Object.keys(formats))('%s: mono stays mono, and two equal channels stay two', async (name) => {
    for (const [i, file] of names(name).entries()) {
      const stream = await openAudio(join(folder, file))
      const channels = await collect(stream)
      expect([stream.channelCount, channels.length]).toEqual([i + 1, i + 1])
      expect(maxDifference(channels[0]!, channels.at(-1)!)).toBeLessThan(0.001)
      expect(stream.warnings).toEqual([])
    }
  })

  it.each([
    ['mono and then stereo is mixed to mono', 'mono.mp3', 'stereo.mp3', 1],
    ['stereo and then mono is stereo', 'stereo.mp3', 'mono.mp3', 2],
  ])('MP3 that is %s', async (_, first, second, count) => {
    const path = join(folder, 'joined.mp3')
    await writeFile(path, Buffer.concat([await readFile(fixture(first)), await readFile(fixture(second))]))
    const stream = await openAudio(path)
    const channels = await collect(stream)
    expect(channels.map(({ length }) => length)).toEqual(Array.from({ length: count }, () => 88_200))
    const [mono] = await collect(await openAudio(fixture('mono.mp3')))
    const stereo = await collect(await openAudio(fixture('stereo.mp3')))
    const mixed = stereo[0]!.map((value, i) => (value + stereo[1]![i]!) / 2)
    const expected = count === 1 ? [[mono!, mixed]] : stereo.map((plane) => [plane, mono!])
    for (const [channel, parts] of expected.entries())
      for (const [i, part] of parts.entries())
        expect(maxDifference(channels[channel]!.subarray(i * 44_100, (i + 1) * 44_100), part)).toBeLessThan(1e-6)
    const note = 'The file begins in mono; its stereo parts were mixed to mono.'
    expect(stream.warnings?.includes(note)).toBe(count === 1)
  })

  it('one channel of AAC at 24 kHz or less counts as two: HE-AAC v2 makes stereo of it', async () => {
    const path = join(folder, 'low.aac')
    const mono = ['-f', 'lavfi', '-i', 'sine=440:d=1:r=24000', '-ac', '1', '-c:a', 'aac']
    await runProgram('ffmpeg', ['-v', 'error', ...mono, path])
    expect((await openAudio(path)).channelCount).toBe(2)
  })
})

it('M4A that calls itself HE-AAC v2 is decoded, in two channels', async () => {
  const bytes = await readFile(fixture('mono.m4a'))
  // Plain AAC in one channel at 44.1 kHz, with an extension; type 29 at 22.05 kHz, doubled.
  const setup = bytes.indexOf(Buffer.from('120856e500', 'hex'))
  expect(setup).toBeGreaterThan(0)
  bytes.set(Buffer.from('eb8a080000', 'hex'), setup)
  const path = join(folder, 'he-aac-v2.m4a')
  await writeFile(path, bytes)
  const stream = await openAudio(path)
  const channels = await collect(stream)
  expect([stream.sampleRate, stream.channelCount]).toEqual([44_100, 2])
  expect(Math.max(...channels[1]!)).toBeGreaterThan(0.1)
})
