import { synchsafe } from '../bytes.js'
import { addCover, addText, type AudioTags, type TextTag } from './audio-tags.js'

/** By the frames' names in ID3v2.2, and in 2.3 and 2.4. */
const textFrames: Record<string, TextTag> = {
  TT2: 'title',
  TP1: 'artist',
  TAL: 'album',
  TRK: 'track',
  TYE: 'date',
  TCO: 'genre',
  TIT2: 'title',
  TPE1: 'artist',
  TALB: 'album',
  TRCK: 'track',
  TYER: 'date',
  TDRC: 'date',
  TCON: 'genre',
}

const headerBytes = 10

/** Length of the ID3v2 tag with this start, including its header; `undefined` if it is none. */
export function id3v2Bytes(start: Buffer): number | undefined {
  if (start.length < headerBytes || start.toString('latin1', 0, 3) !== 'ID3') return undefined
  return headerBytes + synchsafe(start, 6)
}

/** Reads a complete ID3v2 tag (versions 2.2 to 2.4). */
export function readId3v2(tag: Buffer): AudioTags {
  const tags: AudioTags = {}
  let otherPicture: Buffer | undefined
  for (const { name, body, version } of framesOf(tag)) {
    const field = Object.hasOwn(textFrames, name) ? textFrames[name] : undefined
    if (field) addText(tags, field, field === 'genre' ? genre(frameText(body)) : frameText(body))
    if (name !== 'APIC' && name !== 'PIC') continue
    const { isFront, picture } = pictureOf(body, version)
    if (isFront) addCover(tags, picture)
    else otherPicture ??= picture
  }
  if (otherPicture) addCover(tags, otherPicture)
  return tags
}

interface Frame {
  name: string
  body: Buffer
  version: number
}

/** The frames that can be read, up to the first one that does not fit into the tag. */
function* framesOf(tag: Buffer): Generator<Frame, void, undefined> {
  const version = tag[3]!
  if (id3v2Bytes(tag) === undefined || version < 2 || version > 4) return
  const flags = tag[5]!
  const isUnsynchronized = (flags & 0x80) !== 0
  const content = isUnsynchronized && version < 4 ? synchronized(tag.subarray(headerBytes)) : tag.subarray(headerBytes)
  const nameBytes = version === 2 ? 3 : 4
  const frameHeaderBytes = version === 2 ? 6 : 10
  let at = flags & 0x40 ? extendedHeaderBytes(content, version) : 0
  while (at + frameHeaderBytes <= content.length && content[at] !== 0) {
    const name = content.toString('latin1', at, at + nameBytes)
    const length = frameLength(content, at + nameBytes, version)
    const start = at + frameHeaderBytes
    at = start + length
    if (at > content.length) return
    const body = frameBody(content.subarray(start, at), content.subarray(start - 2, start), version, isUnsynchronized)
    if (body && body.length >= 2) yield { name, body, version }
  }
}

function extendedHeaderBytes(content: Buffer, version: number): number {
  if (content.length < 4 || version === 2) return 0
  return version === 3 ? 4 + content.readUInt32BE(0) : synchsafe(content, 0)
}

/** Reads the tag at the end of old MP3 files, of 128 bytes. */
export function readId3v1(tag: Buffer): AudioTags {
  const tags: AudioTags = {}
  if (tag.length < 128 || tag.toString('latin1', 0, 3) !== 'TAG') return tags
  const text = (from: number, to: number) => tag.toString('latin1', from, to).split('\0')[0] ?? ''
  addText(tags, 'title', text(3, 33))
  addText(tags, 'artist', text(33, 63))
  addText(tags, 'album', text(63, 93))
  addText(tags, 'date', text(93, 97))
  if (tag[125] === 0 && tag[126] !== 0) addText(tags, 'track', String(tag[126]))
  return tags
}

function frameLength(content: Buffer, at: number, version: number): number {
  if (version === 2) return content.readUIntBE(at, 3)
  const plain = content.readUInt32BE(at)
  // Some programs write 2.4 with the lengths of 2.3.
  return version === 4 && (plain & 0x80808080) === 0 ? synchsafe(content, at) : plain
}

/** The body without the fields that the frame's flags put before it; `undefined` if compressed or encrypted. */
function frameBody(body: Buffer, flags: Buffer, version: number, isUnsynchronized: boolean): Buffer | undefined {
  if (version === 2) return body
  if (version === 3) return flags[1]! & 0xc0 ? undefined : body.subarray(flags[1]! & 0x20 ? 1 : 0)
  if (flags[1]! & 0x0c) return undefined
  const content = body.subarray((flags[1]! & 0x40 ? 1 : 0) + (flags[1]! & 0x01 ? 4 : 0))
  return isUnsynchronized || flags[1]! & 0x02 ? synchronized(content) : content
}

/** Removes the zeros that keep decoders from taking a tag for audio. */
function synchronized(bytes: Buffer): Buffer {
  const result = Buffer.alloc(bytes.length)
  let length = 0
  for (let i = 0; i < bytes.length; i++) {
    result[length++] = bytes[i]!
    if (bytes[i] === 0xff && bytes[i + 1] === 0) i++
  }
  return result.subarray(0, length)
}

/** Several values are separated by zeros. */
function frameText(body: Buffer): string {
  const values = decoded(body.subarray(1), body[0]!).split('\0')
  return values.filter((value) => value.trim() !== '').join(', ')
}

function decoded(bytes: Buffer, encoding: number): string {
  switch (encoding) {
    case 1: {
      const isBigEndian = bytes[0] === 0xfe && bytes[1] === 0xff
      return utf16(bytes.subarray(isBigEndian || (bytes[0] === 0xff && bytes[1] === 0xfe) ? 2 : 0), isBigEndian)
    }
    case 2:
      return utf16(bytes, true)
    case 3:
      return bytes.toString('utf8')
    default:
      return bytes.toString('latin1')
  }
}

function utf16(bytes: Buffer, isBigEndian: boolean): string {
  const even = Buffer.from(bytes.subarray(0, bytes.length & ~1))
  return (isBigEndian ? even.swap16() : even).toString('utf16le')
}

/** `(17)Rock` is `Rock`. A number alone says nothing without a table of 1996. */
function genre(text: string): string {
  const named = text.replace(/^(\(\d+\))+/, '')
  return /^\d+$/.test(named) ? '' : named
}

function pictureOf(body: Buffer, version: number): { isFront: boolean; picture: Buffer } {
  const typeAt = version === 2 ? 4 : 1 + afterZero(body.subarray(1), false)
  const description = body.subarray(typeAt + 1)
  const isWide = body[0] === 1 || body[0] === 2
  return { isFront: body[typeAt] === 3, picture: description.subarray(afterZero(description, isWide)) }
}

/** The position after a text that ends in a zero, of one byte or two. */
function afterZero(bytes: Buffer, isWide: boolean): number {
  if (!isWide) {
    const at = bytes.indexOf(0)
    return at < 0 ? bytes.length : at + 1
  }
  for (let at = 0; at + 1 < bytes.length; at += 2) if (bytes[at] === 0 && bytes[at + 1] === 0) return at + 2
  return bytes.length
}
