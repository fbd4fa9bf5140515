import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import { seededRandom } from '../crash/random.js'
import { collect } from '../separation/tracks.js'
import { hasProgram, runProgram } from './programs.js'
import { fixture } from './test-signal.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()
let whole: Buffer
beforeAll(async () => {
  whole = await readFile(fixture('video.ts'))
})

async function read(bytes: Uint8Array) {
  const path = join(folder, 'file.ts')
  await writeFile(path, bytes)
  const stream = await openAudio(path)
  const [left] = await collect(stream)
  return { left: left!, warnings: stream.warnings, fraction: stream.readFraction?.() }
}

describe('an MPEG transport stream', () => {
  it('that is damaged decodes up to the damage, and says so', async () => {
    const { left, fraction } = await read(whole)
    expect(fraction).toBe(1)
    const damaged = Buffer.from(whole)
    damaged.fill(0, whole.length / 2, whole.length / 2 + 400)
    const part = await read(damaged)
    expect(part.warnings).toEqual([expect.stringContaining('is damaged; the sound after that was left out')])
    expect(part.left.length).toBeGreaterThan(left.length / 4)
    // The last frame before the damage may be incomplete.
    const heard = part.left.subarray(0, part.left.length - 4096)
    expect(heard.every((value, i) => value === left[i])).toBe(true)
  })

  it('ends with audio or as bad input, wherever bytes are changed or cut off', async () => {
    const random = seededRandom(5)
    const upTo = (count: number) => Math.floor(random() * count)
    for (let run = 0; run < 100; run++) {
      const bytes = Buffer.from(whole.subarray(0, run % 4 === 0 ? upTo(whole.length) : whole.length))
      // Most changes hit the tables at the beginning.
      for (let change = upTo(20); change >= 0; change--) bytes[upTo(change % 2 ? 600 : bytes.length)] = upTo(256)
      const error = await read(bytes).then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      if (error !== undefined) expect(error).toMatchObject({ code: 'BAD_INPUT' })
    }
  })

  it.skipIf(!hasProgram('ffmpeg'))('without sound is refused by its format (needs ffmpeg)', async () => {
    const path = join(folder, 'silent.ts')
    await runProgram('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', 'testsrc=s=64x64:r=25:d=1', path])
    await expect(openAudio(path)).rejects.toMatchObject({
      reason: 'unsupported_format',
      message: expect.stringMatching(/^The file is an MPEG transport stream \(TS\) in which no AAC, .*ffmpeg/),
    })
  })
})

it('an MP3 file of free format is refused with what decodes it, even if ffmpeg is allowed', async () => {
  for (const decoders of [undefined, { ffmpeg: true }])
    await expect(openAudio(fixture('refused-free-format.mp3'), { decoders })).rejects.toMatchObject({
      reason: 'unsupported_format',
      message: expect.stringMatching(/"free format" bit rate\. Decode it with mpg123 or LAME, and send WAV or FLAC\.$/),
    })
})
