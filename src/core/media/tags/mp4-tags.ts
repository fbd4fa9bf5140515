import { boxAt, type Box as MovieBox, childBoxes } from '../decode/mp4/mp4-boxes.js'
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

type Box = Omit<MovieBox, 'start'>

/** Reads the tags of MP4 and M4A files as iTunes writes them. */
export async function readMp4Tags(source: TagSource): Promise<AudioTags> {
  let box: Box | undefined = { type: '', body: 0, end: source.bytes }
  for (const type of path) {
    const start: number = box.type === 'meta' ? await childrenOfMeta(source, box.body) : box.body
    box = await findBox(source, type, start, box.end)
    if (!box) return {}
  }
  const list = await source.tag(box.body, box.end - box.body)
  return list ? readList(list) : {}
}

/** `meta` has a version before its boxes, except in QuickTime. */
async function childrenOfMeta(source: TagSource, start: number): Promise<number> {
  return (await source.read(start + 4, 4)).toString('latin1') === 'hdlr' ? start : start + 4
}

async function findBox(source: TagSource, wanted: string, start: number, end: number): Promise<Box | undefined> {
  for (let at = start; at + 8 <= end;) {
    const header = await source.header(at, 16)
    const box = header && boxAt(header, 0, end - at)
    if (!box) return undefined
    if (box.type === wanted) return { type: wanted, body: at + box.body, end: Math.min(at + box.end, end) }
    at += box.end
  }
  return undefined
}

function readList(list: Buffer): AudioTags {
  const tags: AudioTags = {}
  for (const { type, body, end } of childBoxes(list, 0, list.length))
    addValues(tags, type, valuesOf(list.subarray(body, end)))
  return tags
}

/** The contents of the `data` boxes, after their types and languages. */
function valuesOf(item: Buffer): Buffer[] {
  const boxes = Array.from(childBoxes(item, 0, item.length)).filter(({ type }) => type === 'data')
  return boxes.map(({ body, end }) => item.subarray(body + 8, end))
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
