import type { AudioTags, TextTag } from './audio-tags.js'
import { id3Tag } from './id3-writer.js'

const fields: [TextTag, string][] = [
  ['title', 'INAM'],
  ['artist', 'IART'],
  ['album', 'IPRD'],
  ['track', 'ITRK'],
  ['date', 'ICRD'],
  ['genre', 'IGNR'],
]

/**
 * The chunks of a WAV file for these tags: `LIST` of type `INFO`, and an ID3 tag, which holds the cover, too. Of even
 * length.
 */
export function riffTagChunks(tags: AudioTags): Uint8Array {
  const info = fields.flatMap(([field, type]) => {
    const text = tags[field]
    return text === undefined ? [] : [chunk(type, Buffer.from(`${text}\0`))]
  })
  const id3 = id3Tag(tags)
  return Buffer.concat([
    ...(info.length > 0 ? [chunk('LIST', Buffer.concat([Buffer.from('INFO'), ...info]))] : []),
    ...(id3.length > 0 ? [chunk('id3 ', id3)] : []),
  ])
}

function chunk(type: string, content: Uint8Array): Buffer {
  const header = Buffer.alloc(8)
  header.write(type, 'latin1')
  header.writeUInt32LE(content.length, 4)
  return Buffer.concat([header, content, Buffer.alloc(content.length % 2)])
}
