import { addText, type AudioTags, mergedTags, type TextTag } from './audio-tags.js'
import { readId3v2 } from './id3-reader.js'
import type { TagSource } from './tag-source.js'

const infoFields: Record<string, TextTag> = {
  INAM: 'title',
  IART: 'artist',
  IPRD: 'album',
  ITRK: 'track',
  IPRT: 'track',
  ICRD: 'date',
  IGNR: 'genre',
}
const aiffFields: Record<string, TextTag> = { NAME: 'title', AUTH: 'artist' }

/** A `data` chunk of RF64 states this length; the true one is in `ds64`. */
const unknownLength = 0xffff_ffff

/**
 * Reads the chunks `LIST` of type `INFO` and `id3 ` of WAV files, `NAME`, `AUTH` and `ID3 ` of AIFF files.
 *
 * @param position of the file's first header
 */
export async function readChunkTags(source: TagSource, position: number): Promise<AudioTags> {
  const head = await source.read(position, 12)
  const isAiff = head.toString('latin1', 0, 4) === 'FORM'
  const found: FoundTags = { id3: {}, info: {} }
  let longDataBytes: number | undefined
  for (let at = position + 12; ;) {
    const header = await source.header(at, 8)
    if (!header) return mergedTags(found.id3, found.info)
    const type = header.toString('latin1', 0, 4)
    let length = isAiff ? header.readUInt32BE(4) : header.readUInt32LE(4)
    if (type === 'data' && length === unknownLength && longDataBytes !== undefined) length = longDataBytes
    if (type === 'ds64') longDataBytes = Number((await source.tag(at + 16, 8))?.readBigUInt64LE() ?? 0)
    await readChunk(source, { type, body: at + 8, length, isAiff }, found)
    at += 8 + length + (length % 2)
  }
}

interface FoundTags {
  id3: AudioTags
  info: AudioTags
}

/** Adds the tags of one chunk to those found before. */
async function readChunk(
  source: TagSource,
  { type, body, length, isAiff }: { type: string; body: number; length: number; isAiff: boolean },
  found: FoundTags,
): Promise<void> {
  if (type.toLowerCase() === 'id3 ') {
    const tag = await source.tag(body, length)
    if (tag) found.id3 = mergedTags(found.id3, readId3v2(tag))
  }
  if (!isAiff && type === 'LIST') {
    const list = await source.tag(body, length)
    if (list?.toString('latin1', 0, 4) === 'INFO') readInfo(found.info, list.subarray(4))
  }
  const field = isAiff && Object.hasOwn(aiffFields, type) ? aiffFields[type] : undefined
  if (field) addText(found.info, field, text(await source.read(body, Math.min(length, 4096))))
}

function readInfo(tags: AudioTags, list: Buffer): void {
  for (let at = 0; at + 8 <= list.length;) {
    const type = list.toString('latin1', at, at + 4)
    const length = list.readUInt32LE(at + 4)
    const field = Object.hasOwn(infoFields, type) ? infoFields[type] : undefined
    if (field) addText(tags, field, text(list.subarray(at + 8, at + 8 + length)))
    at += 8 + length + (length % 2)
  }
}

/** UTF-8 if it is valid, else Latin-1: the format does not say. */
function text(bytes: Buffer): string {
  const end = bytes.indexOf(0)
  const content = end < 0 ? bytes : bytes.subarray(0, end)
  const unicode = content.toString('utf8')
  return unicode.includes('\ufffd') ? content.toString('latin1') : unicode
}
