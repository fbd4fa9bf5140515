import { concat, latin1, latin1Bytes, viewOf } from '../../bytes.js'
import { damagedFile } from '../damaged-file.js'
import type { FileBytes } from '../file-bytes.js'
import { headerCount } from '../header-count.js'

/**
 * A box of an MP4 file (ISO/IEC 14496-12, 4.2). Positions count from the start of the file or of the buffer that holds
 * it.
 */
export interface Box extends BoxRange {
  type: string
  start: number
}

export interface BoxRange {
  /** Position of the content. */
  body: number
  end: number
}

// Not mediabunny (11.3 MB): tables of 2^32 samples make it run forever, and it supports neither ALAC nor Ogg FLAC.

/** A fragmented file has two boxes for each fragment of a second or more. */
const mostTopBoxes = 100_000

/** The boxes of a file from `position` on. The last one may reach past the end of the file. */
export async function* topBoxes(file: FileBytes, position: number): AsyncGenerator<Box, void, undefined> {
  const count = headerCount('boxes', mostTopBoxes)
  while (position + 8 <= file.size) {
    count()
    const box = boxAt(await file.read(position, 16), 0, file.size - position)
    if (!box) return
    yield { type: box.type, start: position, body: position + box.body, end: position + box.end }
    position += box.end
  }
}

/** The boxes directly inside `[from, to)`, without those that reach past `to`. */
export function* childBoxes(bytes: Uint8Array, from: number, to: number): Generator<Box, void, undefined> {
  const count = headerCount('boxes inside one box of its index')
  for (let at = from; at + 8 <= to;) {
    count()
    const box = boxAt(bytes, at, to - at)
    if (!box || box.end > to) return
    yield box
    at = box.end
  }
}

/** The first box inside the range to which the path of types leads. */
export function findBox(bytes: Uint8Array, { body, end }: BoxRange, ...path: string[]): Box | undefined {
  const [type, ...rest] = path
  for (const box of childBoxes(bytes, body, end)) {
    if (box.type === type) return rest.length === 0 ? box : findBox(bytes, box, ...rest)
  }
  return undefined
}

/** A box with the content of `parts`. */
export function writeBox(type: string, ...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const head = latin1Bytes(type.padStart(8))
  viewOf(head).setUint32(
    0,
    parts.reduce((sum, part) => sum + part.length, 8),
  )
  return concat([head, ...parts])
}

/** The table of a box: a count, then entries of the same size. */
export interface Table {
  view: DataView
  count: number
  entryBytes: number
}

/**
 * @param headBytes from the start of the box's content to the entries; the last four of these bytes are the count
 * @throws StemworkError `BAD_INPUT` `decode_failed` when the box has no room for that many entries
 */
export function tableOf(bytes: Uint8Array, box: Box, headBytes: number, entryBytes: number): Table {
  const start = box.body + headBytes
  if (start > box.end) throw damagedFile(`The table "${box.type}" of the MP4 file is cut off.`)
  const view = new DataView(bytes.buffer, bytes.byteOffset + start, box.end - start)
  const count = new DataView(bytes.buffer, bytes.byteOffset + start - 4, 4).getUint32(0)
  if (count * entryBytes > view.byteLength) {
    const room = Math.floor(view.byteLength / entryBytes)
    throw damagedFile(`The table "${box.type}" of the MP4 file claims ${count} entries, but there is room for ${room}.`)
  }
  return { view, count, entryBytes }
}

/** The box whose header is at `at`. @param room bytes up to the end of the parent */
export function boxAt(bytes: Uint8Array, at: number, room: number): Box | undefined {
  if (at + 8 > bytes.length) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  const short = view.getUint32(at)
  const isLong = short === 1 && at + 16 <= bytes.length
  const size = isLong ? Number(view.getBigUint64(at + 8)) : short === 0 ? room : short
  const headerBytes = isLong ? 16 : 8
  if (size < headerBytes) return undefined
  const type = latin1(bytes, at + 4, at + 8)
  return { type, start: at, body: at + headerBytes, end: at + size }
}
