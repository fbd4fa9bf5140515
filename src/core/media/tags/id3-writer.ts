import { concat, latin1Bytes, viewOf } from '../bytes.js'
import type { AudioTags, TextTag } from './audio-tags.js'

const textFrames: [TextTag, string][] = [
  ['title', 'TIT2'],
  ['artist', 'TPE1'],
  ['album', 'TALB'],
  ['track', 'TRCK'],
  ['genre', 'TCON'],
  ['bpm', 'TBPM'],
  ['key', 'TKEY'],
]

/** An ID3v2.3 tag, the version that every player reads; empty without tags. */
export function id3Tag(tags: AudioTags): Uint8Array {
  const frames = textFrames.flatMap(([field, name]) => {
    const text = tags[field]
    return text === undefined ? [] : [frame(name, encodedText(text))]
  })
  const year = tags.date?.match(/^\d{4}/)?.[0]
  if (year !== undefined) frames.push(frame('TYER', encodedText(year)))
  if (tags.cover) {
    const { contentType, bytes } = tags.cover
    // Latin-1, the type of the picture, "front cover", and no description.
    frames.push(frame('APIC', concat([latin1Bytes(`\0${contentType}\0\x03\0`), bytes])))
  }
  if (frames.length === 0) return new Uint8Array(0)
  const content = concat(frames)
  const header = latin1Bytes('ID3\x03\0\0\0\0\0\0')
  // Seven bits in each byte, so that no decoder takes the length for audio.
  for (let i = 0; i < 4; i++) header[9 - i] = (content.length >> (7 * i)) & 0x7f
  return concat([header, content])
}

function frame(name: string, body: Uint8Array): Uint8Array {
  const header = latin1Bytes(name.padEnd(10, '\0'))
  viewOf(header).setUint32(4, body.length)
  return concat([header, body])
}

/** The text after the number of its encoding: Latin-1 for ASCII, else UTF-16 with its byte order. */
function encodedText(text: string): Uint8Array {
  if (/^[\x20-\x7e]*$/.test(text)) return latin1Bytes(`\0${text}`)
  const bytes = new Uint8Array(3 + 2 * text.length)
  bytes.set([1, 0xff, 0xfe])
  for (let index = 0; index < text.length; index++) viewOf(bytes).setUint16(3 + 2 * index, text.charCodeAt(index), true)
  return bytes
}
