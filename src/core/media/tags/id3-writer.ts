import type { AudioTags, TextTag } from './audio-tags.js'

const textFrames: [TextTag, string][] = [
  ['title', 'TIT2'],
  ['artist', 'TPE1'],
  ['album', 'TALB'],
  ['track', 'TRCK'],
  ['genre', 'TCON'],
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
    frames.push(frame('APIC', Buffer.concat([Buffer.from(`\0${contentType}\0\x03\0`, 'latin1'), bytes])))
  }
  if (frames.length === 0) return new Uint8Array(0)
  const content = Buffer.concat(frames)
  const header = Buffer.from('ID3\x03\0\0\0\0\0\0', 'latin1')
  // Seven bits in each byte, so that no decoder takes the length for audio.
  for (let i = 0; i < 4; i++) header[9 - i] = (content.length >> (7 * i)) & 0x7f
  return Buffer.concat([header, content])
}

function frame(name: string, body: Buffer): Buffer {
  const header = Buffer.alloc(10)
  header.write(name, 'latin1')
  header.writeUInt32BE(body.length, 4)
  return Buffer.concat([header, body])
}

/** With the number of the encoding before it: Latin-1 for ASCII, else UTF-16 with its byte order. */
function encodedText(text: string): Buffer {
  if (/^[\x20-\x7e]*$/.test(text)) return Buffer.from(`\0${text}`, 'latin1')
  return Buffer.concat([Buffer.from([1, 0xff, 0xfe]), Buffer.from(text, 'utf16le')])
}
