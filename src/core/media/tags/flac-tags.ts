import { type AudioTags, mergedTags } from './audio-tags.js'
import type { TagSource } from './tag-source.js'
import { readFlacPicture, readVorbisComments } from './vorbis-comment-reader.js'

const blockTypes = { comments: 4, picture: 6 }

/** @param position of the first metadata block */
export async function readFlacTags(source: TagSource, position: number): Promise<AudioTags> {
  let tags: AudioTags = {}
  for (let at = position; ;) {
    const header = await source.header(at, 4)
    if (!header) return tags
    const length = header.readUIntBE(1, 3)
    const type = header[0]! & 0x7f
    if (type === blockTypes.comments || type === blockTypes.picture) {
      const block = await source.tag(at + 4, length)
      if (block) tags = withFlacBlock(tags, header, block)
    }
    if (header[0]! & 0x80) return tags
    at += 4 + length
  }
}

/** The tags with those of a metadata block, whose header begins with its type. */
export function withFlacBlock(tags: AudioTags, header: Buffer, content: Buffer): AudioTags {
  const type = header[0]! & 0x7f
  if (type === blockTypes.picture) readFlacPicture(tags, content)
  return type === blockTypes.comments ? mergedTags(tags, readVorbisComments(content)) : tags
}
