import { badInput } from '../../engine/errors.js'
import type { FileBytes } from './file-bytes.js'
import { damagedFile } from './damaged-file.js'

interface Box {
  type: string
  start: number
  end: number
  headerBytes: number
}

/** The bytes of an MP4 file with its index first, and the length that the index states. */
export interface OrderedMp4 {
  pieces: AsyncGenerator<Uint8Array, void, undefined>
  /** Length of the first audio track, from its header; undefined for fragmented files. */
  seconds: number | undefined
}

/** The index of a day of audio takes about 30 MB; a much larger one is damage or an attack. */
const largestIndexBytes = 128 * 1024 * 1024
const containers = new Set(['moov', 'trak', 'mdia', 'minf', 'stbl'])

/**
 * Returns the bytes of an MP4, M4A, MOV or 3GP file in the order that a streaming decoder needs: the index (`moov`) before the
 * media. Most files have the index at the end, so decoders would keep the whole file in memory. It is moved to the front, as
 * "fast start" tools do, and the chunk offsets in it (`stco`, `co64`; ISO/IEC 14496-12, 8.7.5) are raised by its size.
 *
 * @throws StemworkError `BAD_INPUT`: `decode_failed` without an index, `no_audio` without an audio track.
 */
export async function orderMp4(file: FileBytes, pieceBytes: number): Promise<OrderedMp4> {
  const index = await findIndex(file)
  const bytes = await file.read(index.start, index.end - index.start)
  const track = readIndex(bytes)
  if (!track.hasAudio) throw badInput('no_audio', 'The file has no audio track; expected a song or a video with sound.')
  if (index.isBeforeMedia) {
    return { seconds: track.seconds, pieces: inOrder(file, index.end, pieceBytes) }
  }
  raiseChunkOffsets(bytes, index.start)
  return { seconds: track.seconds, pieces: indexFirst(file, bytes, index, pieceBytes) }
}

async function* inOrder(
  file: FileBytes,
  headBytes: number,
  pieceBytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  // In one piece, so that the decoder does not parse a growing index repeatedly.
  yield await file.read(0, headBytes)
  yield* file.pieces({ from: headBytes, pieceBytes })
}

async function* indexFirst(
  file: FileBytes,
  index: Uint8Array,
  box: Box,
  pieceBytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield index
  yield* file.pieces({ to: box.start, pieceBytes })
  yield* file.pieces({ from: box.end, pieceBytes })
}

async function findIndex(file: FileBytes): Promise<Box & { isBeforeMedia: boolean }> {
  let isBeforeMedia = true
  for (let position = 0; position + 8 <= file.size;) {
    const box = boxAt(await file.read(position, 16), 0, file.size - position)
    if (!box) break
    const end = position + box.end
    if (box.type === 'moov') {
      if (end > file.size || box.end > largestIndexBytes) break
      return { ...box, start: position, end, isBeforeMedia }
    }
    if (box.type === 'mdat') isBeforeMedia = false
    position = end
  }
  throw damagedFile('The MP4 file has no complete index; it was cut off, or the recording was not finished.')
}

/** The box at `at`, with positions relative to the buffer; `room` is the end of its parent. */
function boxAt(bytes: Uint8Array, at: number, room: number): Box | undefined {
  if (at + 8 > bytes.length) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  const short = view.getUint32(at)
  const type = String.fromCharCode(...bytes.subarray(at + 4, at + 8))
  const isLong = short === 1 && at + 16 <= bytes.length
  const size = isLong ? Number(view.getBigUint64(at + 8)) : short === 0 ? room : short
  const headerBytes = isLong ? 16 : 8
  return size < headerBytes ? undefined : { type, start: at, end: at + size, headerBytes }
}

function* leaves(bytes: Uint8Array, from: number, to: number): Generator<Box | 'track', void, undefined> {
  for (let at = from; at + 8 <= to;) {
    const box = boxAt(bytes, at, to - at)
    if (!box || box.end > to) return
    if (box.type === 'trak') yield 'track'
    if (containers.has(box.type)) yield* leaves(bytes, at + box.headerBytes, box.end)
    else yield box
    at = box.end
  }
}

function readIndex(bytes: Uint8Array): { hasAudio: boolean; seconds: number | undefined } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let seconds: number | undefined
  for (const box of leaves(bytes, 0, bytes.length)) {
    if (box === 'track') {
      seconds = undefined
      continue
    }
    const body = box.start + box.headerBytes
    if (box.type === 'mdhd' && box.end - body >= 20) {
      const isLong = bytes[body] === 1 && box.end - body >= 32
      const timescale = view.getUint32(body + (isLong ? 20 : 12))
      const duration = isLong ? Number(view.getBigUint64(body + 24)) : view.getUint32(body + 16)
      // All ones means unknown; fragmented files state 0.
      const isKnown = timescale > 0 && duration > 0 && duration < 0xffff_ffff
      seconds = isKnown ? duration / timescale : undefined
    }
    // Media headers come before handlers (ISO/IEC 14496-12, 6.2.3 recommends it; without it the length is simply unknown).
    if (box.type === 'hdlr' && String.fromCharCode(...bytes.subarray(body + 8, body + 12)) === 'soun')
      return { hasAudio: true, seconds }
  }
  return { hasAudio: false, seconds: undefined }
}

/** Media after the index keeps its offset: moving the index removes as many bytes before it as it inserts. */
function raiseChunkOffsets(bytes: Uint8Array, indexStart: number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (const box of leaves(bytes, 0, bytes.length)) {
    if (box === 'track' || (box.type !== 'stco' && box.type !== 'co64')) continue
    const width = box.type === 'stco' ? 4 : 8
    const first = box.start + box.headerBytes + 8
    const count = Math.min(view.getUint32(first - 4), Math.floor((box.end - first) / width))
    for (let at = first; at < first + count * width; at += width) {
      const offset = width === 4 ? view.getUint32(at) : Number(view.getBigUint64(at))
      if (offset >= indexStart) continue
      if (width === 4) view.setUint32(at, offset + bytes.length)
      else view.setBigUint64(at, BigInt(offset + bytes.length))
    }
  }
}
