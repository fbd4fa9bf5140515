import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { loadCodec } from '../../src/core/media/decode/codecs.js'
import type { CodecLoader } from '../../src/core/media/decode/codec-stream.js'
import { localFile } from '../../src/core/media/decode/local-file.js'
import { openSource } from '../../src/core/media/decode/open-source.js'
import { writeM4a } from './m4a-file.js'

/** A frame of silence in AAC-LC, stereo: 23 ms in six bytes. */
const silence = Uint8Array.from([0x21, 0x10, 0x04, 0x60, 0x8c, 0x1c])

it.each([10, 3600])(
  'two hours of silence in an M4A of 3 MB are refused after decoding a few minutes, if %i s are allowed',
  async (maxSeconds) => {
    const folder = await mkdtemp(join(tmpdir(), 'stemwork-silence-'))
    let [seconds, longestBlock] = [0, 0]
    const counting: CodecLoader = async (codec) => {
      const decoder = await loadCodec(codec)
      const counted = async (bytes?: Uint8Array) => {
        const decoded = await decoder(bytes)
        const length = (decoded.channelData[0]?.length ?? 0) / decoded.sampleRate || 0
        seconds += length
        longestBlock = Math.max(longestBlock, length)
        return decoded
      }
      return Object.assign(counted, { free: () => decoder.free() })
    }
    try {
      const path = join(folder, 'silence.m4a')
      const file = await open(path, 'w')
      await writeM4a(file, Array<Uint8Array>(310).fill(silence), 1000)
      await file.close()
      const opened = openSource(await localFile(path), {
        maxSeconds,
        load: counting,
        openOther: (_format, error) => Promise.reject(error),
      })
      await expect(opened).rejects.toMatchObject({ code: 'BAD_INPUT', reason: 'too_long' })
      // Previously 20 minutes, decoded 10 minutes at a time: 4.7 s of CPU time and 780 MB.
      expect(seconds).toBeLessThan(300)
      expect(longestBlock).toBeLessThan(90)
    } finally {
      await rm(folder, { recursive: true })
    }
  },
)
