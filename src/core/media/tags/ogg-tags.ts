import type { AudioTags } from './audio-tags.js'
import { withFlacBlock } from './flac-tags.js'
import { maxTagBytes, type TagSource } from './tag-source.js'
import { readVorbisComments } from './vorbis-comment-reader.js'

const pageHeaderBytes = 27

/** Reads the comments of Vorbis, Opus and FLAC: in the packets after the first one of the first stream. */
export async function readOggTags(source: TagSource, position: number): Promise<AudioTags> {
  // All at once: some programs divide a cover among thousands of pages.
  const packets = packetsOf(await source.read(position, maxTagBytes))
  const isFlac = packets.next().value?.toString('latin1', 1, 5) === 'FLAC'
  let tags: AudioTags = {}
  for (const packet of packets) {
    if (!isFlac) {
      const start = ['OpusTags', '\x03vorbis'].find((each) => packet.toString('latin1', 0, each.length) === each)
      return start === undefined ? {} : readVorbisComments(packet.subarray(start.length))
    }
    tags = withFlacBlock(tags, packet, packet.subarray(4))
    // The last block, or audio.
    if (!(packet[0]! < 0x80)) break
  }
  return tags
}

/** The complete packets of the first stream. */
function* packetsOf(bytes: Buffer): Generator<Buffer, undefined, undefined> {
  let parts: Buffer[] = []
  const stream = bytes.subarray(14, 18)
  for (let at = 0; at + pageHeaderBytes < bytes.length && bytes.toString('latin1', at, at + 4) === 'OggS';) {
    const from = at + pageHeaderBytes + bytes[at + 26]!
    const lengths = bytes.subarray(at + pageHeaderBytes, from)
    const isOther = !bytes.subarray(at + 14, at + 18).equals(stream)
    at = from
    for (const length of lengths) {
      if (!isOther) parts.push(bytes.subarray(at, at + length))
      at += length
      // A segment of less than 255 bytes ends a packet.
      if (isOther || length === 255 || at > bytes.length) continue
      yield Buffer.concat(parts)
      parts = []
    }
  }
}
