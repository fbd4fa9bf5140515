import { latin1Bytes, setUint24, viewOf } from '../bytes.js'
import type { AudioEncoder } from './audio-encoder.js'
import type { AudioTags } from '../tags/audio-tags.js'
import { flacTagBlocks } from '../tags/vorbis-comment-writer.js'
import type { FileWriter } from './file-writer.js'
import { blockSamples } from './flac/block-memory.js'
import type { FlacFormat } from './flac/channel-ways.js'
import { FlacBlocks } from './flac/flac-blocks.js'
import { PcmEncoder } from './pcm-encoder.js'

/** The MD5 of all samples. To players, zeros mean that it is unknown. */
export interface FlacSum {
  update(bytes: Uint8Array): unknown
  digest(): Uint8Array
}

/** Flag in the first byte of a metadata block: audio follows. */
const lastBlockFlag = 0x80

/**
 * Writes a FLAC file as audio arrives, with the same integers as a WAV file of that width. `close` fills in the facts
 * that are only known then: length, size of the frames and MD5, for players and `flac -t`.
 */
export async function openFlacWriter(
  file: FileWriter,
  format: FlacFormat,
  md5: FlacSum,
  tags: AudioTags = {},
): Promise<AudioEncoder> {
  const tagBlocks = flacTagBlocks(tags)
  const blocks = new FlacBlocks(format)
  const pcm = new PcmEncoder(format.bits === 16 ? '16' : '24')
  const facts: Facts = { hasTags: tagBlocks.length > 0, sampleCount: 0, least: 0, most: 0 }
  /** Samples of the unfinished block. */
  let pending = 0

  const take = (planes: readonly Float32Array[]) => {
    const count = planes[0]!.length
    const { bytes, samples } = pcm.integers(planes)
    md5.update(bytes)
    blocks.put(samples, pending)
    pending += count
    facts.sampleCount += count
  }
  const endBlock = async () => {
    const frame = blocks.encode(pending)
    pending = 0
    facts.least = facts.least === 0 ? frame.length : Math.min(facts.least, frame.length)
    facts.most = Math.max(facts.most, frame.length)
    await file.gather(frame)
  }

  await file.append(streamInfo(format, facts))
  const last = tagBlocks.at(-1)
  if (last) last[0]! |= lastBlockFlag
  for (const block of tagBlocks) await file.append(block)
  return {
    async write(planes) {
      for (let start = 0; start < planes[0]!.length;) {
        const end = Math.min(start + blockSamples - pending, planes[0]!.length)
        take(planes.map((plane) => plane.subarray(start, end)))
        if (pending === blockSamples) await endBlock()
        start = end
      }
    },

    async close() {
      try {
        if (pending > 0) await endBlock()
        await file.flush()
        await file.correct(streamInfo(format, facts, md5.digest()), 0)
        return { sampleCount: facts.sampleCount, clippedSamples: pcm.clippedSamples, bytes: file.bytes }
      } finally {
        await file.close()
      }
    },

    abandon: () => file.close(),
  }
}

/** Facts about the file so far. */
interface Facts {
  hasTags: boolean
  sampleCount: number
  /** Bytes of the shortest and of the longest frame. */
  least: number
  most: number
}

/** The file's signature and its first metadata block (RFC 9639, 8.2). */
function streamInfo(
  { sampleRate, channels, bits }: FlacFormat,
  facts: Facts,
  md5: Uint8Array = new Uint8Array(16),
): Uint8Array {
  const header = new Uint8Array(42)
  const view = viewOf(header)
  header.set(latin1Bytes('fLaC'))
  // A metadata block of type 0 and 34 bytes.
  header[4] = facts.hasTags ? 0 : lastBlockFlag
  header[7] = 34
  view.setUint16(8, blockSamples)
  view.setUint16(10, blockSamples)
  setUint24(view, 12, facts.least)
  setUint24(view, 15, facts.most)
  // 20 bits of rate, 3 of channels, 5 of sample width, 36 of length.
  setUint24(view, 18, sampleRate * 16 + (channels - 1) * 2 + ((bits - 1) >> 4))
  header[21] = (((bits - 1) & 0xf) << 4) | Math.floor(facts.sampleCount / 2 ** 32)
  view.setUint32(22, facts.sampleCount)
  header.set(md5, 26)
  return header
}
