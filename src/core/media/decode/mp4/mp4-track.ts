import { badInput } from '../../../engine/errors.js'
import { latin1, viewOf } from '../../bytes.js'
import { damagedFile } from '../damaged-file.js'
import { childBoxes, findBox, tableOf, writeBox, type Box, type BoxRange, type Table } from './mp4-boxes.js'

/** The first sound track of an MP4 file, from its index. */
export interface Mp4Track {
  id: number
  /** Four characters, for example `mp4a`. */
  codec: string
  /** Length of the played part; undefined for fragmented files, and if the track has several edits. */
  seconds: number | undefined
  tables: ReturnType<typeof readTables>
  /** Size of samples for which a fragment states none. */
  fragmentSampleBytes: number
  isFragmented: boolean
  /** Boxes that a decoder needs besides the tables, including their headers. */
  kept: { movie: Uint8Array[]; track: Uint8Array[]; media: Uint8Array[]; sampleTable: Uint8Array[]; tags: Uint8Array }
}

/** Limited because decoders scan the description of the samples box by box. */
const longestDescription = 1024 * 1024
/** The only tag needed is iTunes' note on the encoder's padding. */
const longestTag = 4096

/**
 * Reads the index (`moov`) of an MP4 file.
 *
 * @throws StemworkError `BAD_INPUT`: `no_audio` without a sound track, `decode_failed` for tables that cannot be right
 */
export function readTrack(bytes: Uint8Array, movie: BoxRange): Mp4Track {
  for (const track of childBoxes(bytes, movie.body, movie.end)) {
    if (track.type !== 'trak') continue
    const handler = findBox(bytes, track, 'mdia', 'hdlr')
    const table = findBox(bytes, track, 'mdia', 'minf', 'stbl')
    if (!handler || !table || latin1(bytes, handler.body + 8, handler.body + 12) !== 'soun') continue
    const description = findBox(bytes, table, 'stsd')
    if (!description || description.end < description.body + 24) continue
    if (description.end - description.body > longestDescription)
      throw damagedFile('The description of the samples in the MP4 file is far too long.')
    return trackOf(bytes, movie, track, table, description)
  }
  throw badInput('no_audio', 'The file has no audio track; expected a song or a video with sound.')
}

function trackOf(bytes: Uint8Array, movie: BoxRange, track: Box, table: Box, description: Box): Mp4Track {
  const view = viewOf(bytes)
  const header = findBox(bytes, track, 'tkhd')
  const mediaHeader = findBox(bytes, track, 'mdia', 'mdhd')
  const edits = findBox(bytes, track, 'edts', 'elst')
  const durations = findBox(bytes, table, 'stts')
  const editTable = edits && tableOf(bytes, edits, 8, bytes[edits.body] === 1 ? 20 : 12)
  if (durations) tableOf(bytes, durations, 8, 8)
  const idAt = header && header.body + (bytes[header.body] === 1 ? 20 : 12)
  const id = idAt !== undefined && idAt + 4 <= bytes.length ? view.getUint32(idAt) : 0
  const whole = (...boxes: (Box | undefined)[]) =>
    boxes.filter((box) => box !== undefined).map((box) => writeBox(box.type, bytes.subarray(box.body, box.end)))
  return {
    id,
    codec: latin1(bytes, description.body + 12, description.body + 16),
    seconds: mediaHeader && playedSeconds(view, mediaHeader, findBox(bytes, movie, 'mvhd'), editTable),
    tables: readTables(bytes, table),
    fragmentSampleBytes: defaultSampleBytes(bytes, movie, id),
    isFragmented: findBox(bytes, movie, 'mvex') !== undefined,
    kept: {
      movie: whole(findBox(bytes, movie, 'mvhd')),
      track: [...whole(header), ...(edits ? [writeBox('edts', ...whole(edits))] : [])],
      media: whole(mediaHeader, findBox(bytes, track, 'mdia', 'hdlr')),
      sampleTable: whole(description, durations),
      tags: paddingTags(bytes, movie, track),
    },
  }
}

/** Decoders play the part of the media that an edit names (ISO/IEC 14496-12, 8.6.6). */
function playedSeconds(view: DataView, media: Box, movie: Box | undefined, edits?: Table): number | undefined {
  const { seconds, timescale } = timesOf(view, media)
  if (!edits || seconds === undefined) return seconds
  const { view: table, entryBytes, count } = edits
  const isLong = entryBytes === 20
  const read = (at: number) => (isLong ? Number(table.getBigInt64(at)) : table.getInt32(at))
  const rows = Array.from({ length: Math.min(count, 3) }, (_, row) => ({
    duration: read(row * entryBytes),
    start: read(row * entryBytes + (isLong ? 8 : 4)),
  }))
  // An edit that starts at -1 is a pause before the sound.
  const [edit, another] = rows.filter(({ start }) => start !== -1)
  if (!edit || another) return undefined
  const movieScale = movie ? timesOf(view, movie).timescale : 0
  const most = edit.duration > 0 && movieScale > 0 ? edit.duration / movieScale : Infinity
  return Math.min(most, seconds - edit.start / timescale)
}

/** Reads the header of the media or of the movie; both begin alike. */
function timesOf(view: DataView, { body, end }: Box): { timescale: number; seconds?: number } {
  if (end - body < 20) return { timescale: 0 }
  const isLong = view.getUint8(body) === 1 && end - body >= 32
  const timescale = view.getUint32(body + (isLong ? 20 : 12))
  const duration = isLong ? Number(view.getBigUint64(body + 24)) : view.getUint32(body + 16)
  // All ones means unknown; fragmented files state 0.
  const isKnown = timescale > 0 && duration > 0 && duration < (isLong ? 2 ** 63 : 0xffff_ffff)
  return isKnown ? { timescale, seconds: duration / timescale } : { timescale }
}

/** Positions of the samples (ISO/IEC 14496-12, 8.7); each count fits into its box. */
function readTables(bytes: Uint8Array, table: Box) {
  const sizes = findBox(bytes, table, 'stsz')
  const perChunk = findBox(bytes, table, 'stsc')
  const short = findBox(bytes, table, 'stco')
  const long = findBox(bytes, table, 'co64')
  const view = viewOf(bytes)
  if (sizes && sizes.end - sizes.body < 12) throw damagedFile('The table "stsz" of the MP4 file is cut off.')
  const fixedBytes = sizes ? view.getUint32(sizes.body + 4) : 0
  return {
    sampleCount: sizes ? view.getUint32(sizes.body + 8) : 0,
    /** 0 if each sample has its own size. */
    fixedBytes,
    sizes: sizes && fixedBytes === 0 ? tableOf(bytes, sizes, 12, 4) : undefined,
    /** Rows of first chunk and samples per chunk. */
    samplesPerChunk: perChunk && tableOf(bytes, perChunk, 8, 12),
    chunkOffsets: short ? tableOf(bytes, short, 8, 4) : long && tableOf(bytes, long, 8, 8),
  }
}

function defaultSampleBytes(bytes: Uint8Array, movie: BoxRange, trackId: number): number {
  const fragments = findBox(bytes, movie, 'mvex')
  if (!fragments) return 0
  const view = viewOf(bytes)
  for (const { type, body, end } of childBoxes(bytes, fragments.body, fragments.end)) {
    if (type === 'trex' && end - body >= 20 && view.getUint32(body + 4) === trackId) return view.getUint32(body + 16)
  }
  return 0
}

/** The free-form iTunes tags, in the boxes that hold them. */
function paddingTags(bytes: Uint8Array, ...ranges: BoxRange[]): Uint8Array {
  for (const range of ranges) {
    const meta = findBox(bytes, range, 'udta', 'meta')
    // In MP4, version and flags come first; in QuickTime they do not.
    const list = meta && (findBox(bytes, { ...meta, body: meta.body + 4 }, 'ilst') ?? findBox(bytes, meta, 'ilst'))
    if (!list) continue
    const tags = [...childBoxes(bytes, list.body, list.end)]
      .filter(({ type, body, end }) => type === '----' && end - body < longestTag)
      .map(({ type, body, end }) => writeBox(type, bytes.subarray(body, end)))
    return writeBox('udta', writeBox('meta', new Uint8Array(4), writeBox('ilst', ...tags)))
  }
  return new Uint8Array(0)
}
