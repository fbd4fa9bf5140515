import type { AudioTags } from './audio-tags.js'
import type { TagSource } from './tag-source.js'
import { readVorbisComments } from './vorbis-comment-reader.js'

const pageHeaderBytes = 27
const maxPacketBytes = 8 * 1024 * 1024

/** Reads the comments of Vorbis and Opus: the second packet of the first stream. */
export async function readOggTags(source: TagSource, position: number): Promise<AudioTags> {
  const packet = await secondPacket(source, position)
  const [opus, vorbis] = ['OpusTags', '\x03vorbis']
  if (packet?.toString('latin1', 0, opus.length) === opus) return readVorbisComments(packet.subarray(opus.length))
  if (packet?.toString('latin1', 0, vorbis.length) === vorbis) return readVorbisComments(packet.subarray(vorbis.length))
  return {}
}

async function secondPacket(source: TagSource, position: number): Promise<Buffer | undefined> {
  const parts: Buffer[] = []
  let bytes = 0
  let packets = 0
  let stream: number | undefined
  for (let at = position; ;) {
    const header = await source.header(at, pageHeaderBytes)
    if (!header || header.toString('latin1', 0, 4) !== 'OggS') return undefined
    const lengths = await source.read(at + pageHeaderBytes, header[26]!)
    const body = lengths.reduce((sum, length) => sum + length, 0)
    const serial = header.readUInt32LE(14)
    stream ??= serial
    let from = at + pageHeaderBytes + lengths.length
    at = from + body
    if (serial !== stream) continue
    // A segment of less than 255 bytes ends a packet.
    for (let index = 0; index < lengths.length;) {
      let length = 0
      let isEnd = false
      while (index < lengths.length && !isEnd) {
        length += lengths[index]!
        isEnd = lengths[index++]! < 255
      }
      if (packets === 1) {
        if ((bytes += length) > maxPacketBytes) return undefined
        parts.push(await source.read(from, length))
        if (isEnd) return Buffer.concat(parts)
      }
      if (isEnd) packets++
      from += length
    }
  }
}
