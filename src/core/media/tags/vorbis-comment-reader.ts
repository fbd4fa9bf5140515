import { addCover, addText, type AudioTags, type TextTag } from './audio-tags.js'

const fields: Record<string, TextTag> = {
  TITLE: 'title',
  ARTIST: 'artist',
  ALBUM: 'album',
  TRACKNUMBER: 'track',
  DATE: 'date',
  YEAR: 'date',
  GENRE: 'genre',
}
const pictureField = 'METADATA_BLOCK_PICTURE'

/** Reads Vorbis comments, as FLAC, Vorbis and Opus have them (https://xiph.org/vorbis/doc/v-comment.html). */
export function readVorbisComments(bytes: Buffer): AudioTags {
  const tags: AudioTags = {}
  const values = new Map<TextTag, string[]>()
  let at = 0
  const next = (): Buffer | undefined => {
    if (at + 4 > bytes.length) return undefined
    const end = at + 4 + bytes.readUInt32LE(at)
    if (end > bytes.length) return undefined
    const value = bytes.subarray(at + 4, end)
    at = end
    return value
  }
  if (!next() || at + 4 > bytes.length) return tags
  // The count is not needed: the comments end with the bytes.
  at += 4
  for (let comment = next(); comment; comment = next()) {
    const equals = comment.indexOf('=')
    const name = comment.toString('latin1', 0, Math.max(0, equals)).toUpperCase()
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (field) values.set(field, [...(values.get(field) ?? []).slice(0, 9), comment.toString('utf8', equals + 1)])
    if (name === pictureField) readFlacPicture(tags, Buffer.from(comment.toString('latin1', equals + 1), 'base64'))
  }
  for (const [field, texts] of values)
    addText(tags, field, field === 'artist' || field === 'genre' ? texts.join(', ') : (texts[0] ?? ''))
  return tags
}

/** Adds the picture of a FLAC picture block (RFC 9639, 8.8). */
export function readFlacPicture(tags: AudioTags, block: Buffer): void {
  if (block.length < 8) return
  const typeEnd = 8 + block.readUInt32BE(4)
  if (typeEnd + 4 > block.length) return
  const sizesAt = typeEnd + 4 + block.readUInt32BE(typeEnd)
  // Width, height, depth and number of colours come before the length.
  const start = sizesAt + 20
  if (start > block.length) return
  addCover(tags, block.subarray(start, start + block.readUInt32BE(start - 4)))
}
