import { packetsOf } from '../decode/ogg/ogg-pages.js'
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
  const parts: Uint8Array[] = []
  let bytes = 0
  let ended = 0
  let stream: number | undefined
  for (let at = position; ;) {
    const header = await source.header(at, pageHeaderBytes)
    if (!header || header.toString('latin1', 0, 4) !== 'OggS') return undefined
    const lengths = await source.read(at + pageHeaderBytes, header[26]!)
    const start = at
    at += lengths.reduce((sum, length) => sum + length, pageHeaderBytes + lengths.length)
    const serial = header.readUInt32LE(14)
    stream ??= serial
    if (serial !== stream) continue
    const { packets, isContinued } = packetsOf({ bytes: await source.read(start, at - start) })
    for (const [index, packet] of packets.entries()) {
      if (ended === 1) parts.push(packet)
      if (ended === 1 && (bytes += packet.length) > maxPacketBytes) return undefined
      if (isContinued && index === packets.length - 1) continue
      if (ended === 1) return Buffer.concat(parts)
      ended++
    }
  }
}
