import type { AudioTags, Cover, TextTag } from './audio-tags.js'

const fields: [TextTag, string][] = [
  ['title', 'TITLE'],
  ['artist', 'ARTIST'],
  ['album', 'ALBUM'],
  ['track', 'TRACKNUMBER'],
  ['date', 'DATE'],
  ['genre', 'GENRE'],
  ['bpm', 'BPM'],
  ['key', 'INITIALKEY'],
]

const blockTypes = { comments: 4, picture: 6 }

/** The metadata blocks of a FLAC file for these tags, none marked as the file's last: RFC 9639, 8.6 and 8.8. */
export function flacTagBlocks(tags: AudioTags): Uint8Array[] {
  const comments = fields.flatMap(([field, name]) => {
    const text = tags[field]
    return text === undefined ? [] : [`${name}=${text}`]
  })
  const blocks: Uint8Array[] = []
  if (comments.length > 0) blocks.push(block(blockTypes.comments, vorbisComments(comments)))
  if (tags.cover) blocks.push(block(blockTypes.picture, picture(tags.cover)))
  return blocks
}

function vorbisComments(comments: readonly string[]): Buffer {
  const count = Buffer.alloc(4)
  count.writeUInt32LE(comments.length)
  const lengthAndText = (text: string) => {
    const bytes = Buffer.from(text)
    const length = Buffer.alloc(4)
    length.writeUInt32LE(bytes.length)
    return Buffer.concat([length, bytes])
  }
  return Buffer.concat([lengthAndText('stemwork'), count, ...comments.map(lengthAndText)])
}

/** A block of type 3, "front cover", without a description. Players read width, height and colours from the picture. */
function picture({ contentType, bytes }: Cover): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(3)
  head.writeUInt32BE(contentType.length, 4)
  const facts = Buffer.alloc(24)
  facts.writeUInt32BE(bytes.length, 20)
  return Buffer.concat([head, Buffer.from(contentType), facts, bytes])
}

function block(type: number, content: Buffer): Buffer {
  const header = Buffer.alloc(4)
  header[0] = type
  header.writeUIntBE(content.length, 1, 3)
  return Buffer.concat([header, content])
}
