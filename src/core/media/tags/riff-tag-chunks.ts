import { concat, latin1Bytes, viewOf } from '../bytes.js'
import type { AudioTags, TextTag } from './audio-tags.js'
import { id3Tag } from './id3-writer.js'

const fields: [TextTag, string][] = [
  ['title', 'INAM'],
  ['artist', 'IART'],
  ['album', 'IPRD'],
  ['track', 'ITRK'],
  ['date', 'ICRD'],
  ['genre', 'IGNR'],
  ['bpm', 'IBPM'],
]

/**
 * The chunks of a WAV file for these tags: `LIST` of type `INFO`, and an ID3 tag, which holds the cover and the key,
 * too. Of even length.
 */
export function riffTagChunks(tags: AudioTags): Uint8Array {
  const info = fields.flatMap(([field, type]) => {
    const text = tags[field]
    return text === undefined ? [] : [chunk(type, new TextEncoder().encode(`${text}\0`))]
  })
  const id3 = id3Tag(tags)
  return concat([
    ...(info.length > 0 ? [chunk('LIST', concat([latin1Bytes('INFO'), ...info]))] : []),
    ...(id3.length > 0 ? [chunk('id3 ', id3)] : []),
  ])
}

function chunk(type: string, content: Uint8Array): Uint8Array {
  const header = latin1Bytes(`${type}\0\0\0\0`)
  viewOf(header).setUint32(4, content.length, true)
  return concat([header, content, new Uint8Array(content.length % 2)])
}
