import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { loadCodec } from '../../src/core/media/decode/codecs.js'
import { localFile } from '../../src/core/media/decode/local-file.js'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import { openSource } from '../../src/core/media/decode/open-source.js'
import { hasProgram, runProgram } from './programs.js'
import { collect, maxDifference } from '../separation/tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const kinds = [
  ['mp3', ['-c:a', 'libmp3lame', '-b:a', '128k']],
  ['ogg', ['-c:a', 'libvorbis', '-q:a', '5']],
  ['opus', ['-c:a', 'libopus', '-b:a', '96k']],
  ['oga', ['-c:a', 'flac', '-sample_fmt', 's16']],
  ['flac', ['-c:a', 'flac', '-sample_fmt', 's16']],
] as const
const lengths = [1.3, 0.7, 2.1]
const folder = temporaryFolder()

async function decoded(path: string): Promise<{ channels: Float32Array[]; warnings: readonly string[] }> {
  const stream = await openAudio(path)
  const channels = await collect(stream)
  return { channels, warnings: [...(stream.warnings ?? [])] }
}

describe.skipIf(!hasProgram('ffmpeg'))('files that were joined end to end (needs ffmpeg)', () => {
  beforeAll(async () => {
    const outputs = kinds.flatMap(([kind, codec]) =>
      lengths.flatMap((_, i) => ['-map', `${i}:a`, '-ac', '2', ...codec, join(folder, `${i}.${kind}`)]),
    )
    const inputs = lengths.flatMap((seconds, i) => ['-f', 'lavfi', '-i', `sine=${300 * (i + 1)}:d=${seconds}:r=48000`])
    await runProgram('ffmpeg', ['-v', 'error', ...inputs, ...outputs])
  })

  async function joined(kind: string, between: Uint8Array = new Uint8Array(0)) {
    const parts = await Promise.all(lengths.map((_, i) => readFile(join(folder, `${i}.${kind}`))))
    const path = join(folder, `joined.${kind}`)
    await writeFile(path, Buffer.concat(parts.flatMap((part, i) => (i > 0 ? [between, part] : [part]))))
    return await decoded(path)
  }

  it.each(kinds)('%s: each part has the same length and sound as alone', async (kind) => {
    const parts = await Promise.all(lengths.map((_, i) => decoded(join(folder, `${i}.${kind}`))))
    const { channels, warnings } = await joined(kind)
    let at = 0
    for (const [i, part] of parts.entries()) {
      const [expected] = part.channels
      expect(expected!.length, `part ${i}`).toBe(Math.round(lengths[i]! * 48_000))
      expect(maxDifference(channels[0]!.subarray(at, at + expected!.length), expected!), `part ${i}`).toBeLessThan(1e-4)
      at += expected!.length
    }
    expect(channels[0]!.length).toBe(at)
    // The length that the file states, unless it is a stream of FLAC, is that of one part.
    if (kind !== 'oga') expect(warnings).toContainEqual(expect.stringContaining('all of them are used'))
    // FLAC alone has no rule for joined files: what lies between the frames counts as damage.
    expect(warnings).toHaveLength({ oga: 0, flac: 2 }[kind as string] ?? 1)
  })

  it.each(['mp3', 'ogg'])(
    '%s: more than a hundred of them use a hundred decoders, and are all decoded',
    async (kind) => {
      const part = await readFile(join(folder, `1.${kind}`))
      const path = join(folder, `many.${kind}`)
      await writeFile(path, Buffer.concat(Array.from({ length: 150 }, () => part)))
      let decoders = 0
      const load = async (codec: string) => {
        decoders++
        return await loadCodec(codec)
      }
      const openOther = (_: unknown, error: Error) => Promise.reject(error)
      const stream = await openSource(await localFile(path), { load, openOther, maxSeconds: Infinity })
      const [samples] = await collect(stream)
      expect(decoders).toBe(100)
      // Parts that share the last decoder keep their encoders' padding.
      expect(samples!.length).toBeGreaterThanOrEqual(150 * 0.7 * 48_000 - 1)
      expect(samples!.length).toBeLessThan(155 * 0.7 * 48_000)
    },
  )

  it('mp3: even with a tag between them', async () => {
    const tag = Buffer.from(`ID3\x04\0\0\0\0\x02\0${'\0'.repeat(256)}`, 'latin1')
    const { channels } = await joined('mp3', tag)
    expect(channels[0]!.length).toBe(Math.round(4.1 * 48_000))
  })
})
