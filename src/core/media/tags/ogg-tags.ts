import { packetsOf, pagesIn } from '../decode/ogg/ogg-pages.js'
import type { AudioTags } from './audio-tags.js'
import { withFlacBlock } from './flac-tags.js'
import { maxTagBytes, type TagSource } from './tag-source.js'
import { readVorbisComments } from './vorbis-comment-reader.js'

/** Reads the comments of Vorbis, Opus and FLAC: in the packets after the first one of the first stream. */
export async function readOggTags(source: TagSource, position: number): Promise<AudioTags> {
  // All at once: some programs divide a cover among thousands of pages.
  const packets = packetsIn(await source.read(position, maxTagBytes))
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
function* packetsIn(bytes: Buffer): Generator<Buffer, undefined, undefined> {
  let parts: Uint8Array[] = []
  let stream: number | undefined
  for (const page of pagesIn(bytes)) {
    stream ??= page.serial
    if (page.serial !== stream) continue
    const { packets, isContinued } = packetsOf(page)
    for (const [index, packet] of packets.entries()) {
      parts.push(packet)
      if (isContinued && index === packets.length - 1) continue
      yield Buffer.concat(parts)
      parts = []
    }
  }
}
