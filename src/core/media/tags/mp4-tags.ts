import { addCover, addText, type AudioTags, type TextTag } from './audio-tags.js'
import type { TagSource } from './tag-source.js'

const fields: Record<string, TextTag> = {
  '\xa9nam': 'title',
  '\xa9ART': 'artist',
  '\xa9alb': 'album',
  '\xa9day': 'date',
  '\xa9gen': 'genre',
}
/** Path of the list of tags. */
const path = ['moov', 'udta', 'meta', 'ilst']

interface Box {
  type: string
  start: number
  end: number
}

/** Reads the tags of MP4 and M4A files as iTunes writes them. */
export async function readMp4Tags(source: TagSource): Promise<AudioTags> {
  let box: Box | undefined = { type: '', start: 0, end: source.bytes }
  for (const type of path) {
    const start: number = box.type === 'meta' ? await childrenOfMeta(source, box.start) : box.start
    box = await findBox(source, type, start, box.end)
    if (!box) return {}
  }
  const list = await source.tag(box.start, box.end - box.start)
  return list ? readList(list) : {}
}

/** `meta` has a version before its boxes, except in QuickTime. */
async function childrenOfMeta(source: TagSource, start: number): Promise<number> {
  return (await source.read(start + 4, 4)).toString('latin1') === 'hdlr' ? start : start + 4
}

async function findBox(source: TagSource, wanted: string, start: number, end: number): Promise<Box | undefined> {
  for (let at = start; at + 8 <= end;) {
    const header = await source.header(at, 8)
    if (!header) return undefined
    const type = header.toString('latin1', 4, 8)
    let bytes = header.readUInt32BE(0)
    let headerBytes = 8
    if (bytes === 0) bytes = end - at
    if (bytes === 1) {
      const wide = await source.tag(at + 8, 8)
      if (!wide) return undefined
      bytes = Number(wide.readBigUInt64BE())
      headerBytes = 16
    }
    if (bytes < headerBytes) return undefined
    if (type === wanted) return { type, start: at + headerBytes, end: Math.min(at + bytes, end) }
    at += bytes
  }
  return undefined
}

function readList(list: Buffer): AudioTags {
  const tags: AudioTags = {}
  for (let at = 0; at + 8 <= list.length;) {
    const bytes = list.readUInt32BE(at)
    if (bytes < 8 || at + bytes > list.length) break
    addValues(tags, list.toString('latin1', at + 4, at + 8), valuesOf(list.subarray(at + 8, at + bytes)))
    at += bytes
  }
  return tags
}

/** The contents of the `data` boxes, after their types and languages. */
function valuesOf(item: Buffer): Buffer[] {
  const values: Buffer[] = []
  for (let at = 0; at + 16 <= item.length;) {
    const end = at + item.readUInt32BE(at)
    if (end < at + 16) break
    if (item.toString('latin1', at + 4, at + 8) === 'data') values.push(item.subarray(at + 16, end))
    at = end
  }
  return values
}

function addValues(tags: AudioTags, type: string, values: readonly Buffer[]): void {
  const field = Object.hasOwn(fields, type) ? fields[type] : undefined
  if (field) addText(tags, field, values.map((value) => value.toString('utf8')).join(', '))
  if (type === 'covr') for (const value of values) addCover(tags, value)
  const [value] = values
  if (type === 'trkn' && value && value.length >= 4 && value.readUInt16BE(2) > 0) {
    const of = value.length >= 6 ? value.readUInt16BE(4) : 0
    addText(tags, 'track', `${value.readUInt16BE(2)}${of > 0 ? `/${of}` : ''}`)
  }
}
