import { concat, latin1, viewOf } from '../../core/media/bytes.js'
import { type OggPage, packetsOf, readPages, withoutParts } from '../../core/media/decode/ogg/ogg-pages.js'
import { oggCodecOf } from '../../core/media/decode/ogg/ogg-stream.js'
import { decodedPiece } from './decoded-piece.js'
import { decodeAudio, type OpenFile, type PcmSource, pcmSource } from './pcm.js'

/** Header pages of a stream, numbered from 0, and facts from them. */
interface Stream {
  serial: number
  headers: Uint8Array[]
  sampleRate: number
  /** Samples of Opus to skip before the song. */
  preSkip: number
}

/** The first page that begins at this byte or later ends at this granule position. */
interface Mark {
  granule: number
  byte: number
}

/** More than the longest page (RFC 3533, 6) and the header of another: a page begins and ends within them. */
const probedBytes = 2 * 65_307
/** Samples that a decoder needs before the wanted ones: the overlap of Vorbis, and 80 ms of Opus. */
const leadFrames = 8192
const nearSeconds = 4
/** Attempts to interpolate; after that, the range is halved. */
const guesses = 4
const maxProbes = 24
/** First pages with sound, which show where their granule positions begin. */
const firstPages = 4
/** Headers may contain pictures. */
const mostHeaderBytes = 32e6

/**
 * Opens Vorbis or Opus in Ogg. A piece consists of the headers and the pages that cover it, which are found by their
 * granule positions: browsers decode these as a separate file.
 */
export async function openOgg(file: OpenFile): Promise<PcmSource | undefined> {
  if (latin1(new Uint8Array(file.head), 0, 4) !== 'OggS') return undefined
  const first: OggPage[] = []
  const stream = await streamOf(file, first)
  const last = await lastGranule(file, stream?.serial)
  const end = first.findLast(({ granule }) => granule !== undefined)?.granule
  if (!stream || last === undefined || end === undefined) return undefined
  const decoded = await decode(stream, first)
  // A recording of a broadcast may count from the beginning of the broadcast.
  const origin = Math.max(stream.preSkip, end - (decoded[0]?.length ?? 0))
  const { serial, headers, sampleRate } = stream
  /** In ascending order. */
  const marks = [
    { granule: origin, byte: 0 },
    { granule: last, byte: file.totalBytes },
  ]
  return pcmSource({ sampleRate, frames: last - origin }, async (fromFrame, toFrame, signal) => {
    const [from, to, reading] = [fromFrame + origin, toFrame + origin, { ...file, signal }]
    const pages: OggPage[] = []
    for await (const page of pagesFrom(reading, await before(from - leadFrames, reading, stream, marks))) {
      if (page.serial !== serial || page.sequence < headers.length) continue
      // The last page before the piece may hold the beginning of its first packet.
      if (page.granule !== undefined && page.granule <= from - leadFrames) pages.length = 0
      pages.push(page)
      if ((page.granule ?? 0) >= to) break
    }
    const [first, ...rest] = pages
    const end = pages.at(-1)?.granule
    if (!first || end === undefined) throw new Error('The Ogg file is damaged: a page of it was not found.')
    const begun = withoutParts(first, { first: true, last: false })
    const decoded = await decode(stream, begun ? [begun, ...rest] : rest)
    return decodedPiece(decoded, end - from, to - from)
  })
}

function decode({ headers, sampleRate }: Stream, pages: readonly OggPage[]): Promise<Float32Array<ArrayBuffer>[]> {
  return decodeAudio(concat([...headers, ...pages.map(({ bytes }) => bytes)]).buffer, sampleRate)
}

/** @param first receives the first pages with sound */
async function streamOf(file: OpenFile, first: OggPage[]): Promise<Stream | undefined> {
  let stream: Stream | undefined
  for await (const page of pagesFrom(file, 0, mostHeaderBytes)) {
    stream ??= begun(page)
    if (page.serial !== stream?.serial) continue
    if (first.length === 0 && !page.granule) stream.headers.push(page.bytes)
    else first.push(page)
    if (first.length === firstPages) break
  }
  return stream
}

/** The stream that begins with this page, if it is sound in a known codec. */
function begun(page: OggPage): Stream | undefined {
  const [head] = packetsOf(page).packets
  if (!page.isFirst || !head || head.length < 19) return undefined
  const [codec, view] = [oggCodecOf(head), viewOf(head)]
  const { serial } = page
  if (codec === 'vorbis') return { serial, headers: [], sampleRate: view.getUint32(12, true), preSkip: 0 }
  if (codec === 'opus') return { serial, headers: [], sampleRate: 48_000, preSkip: view.getUint16(10, true) }
  return undefined
}

/** Undefined where another stream follows the one with this number. */
async function lastGranule(file: OpenFile, serial: number | undefined): Promise<number | undefined> {
  let last: number | undefined
  for await (const page of pagesFrom(file, Math.max(0, file.totalBytes - probedBytes)))
    last = page.serial === serial ? (page.granule ?? last) : undefined
  return last
}

async function* pagesFrom(file: OpenFile, byte: number, until = file.totalBytes): AsyncGenerator<OggPage> {
  yield* readPages(bytesFrom(file, byte, Math.min(until, file.totalBytes)))
}

async function* bytesFrom({ read, signal }: OpenFile, from: number, until: number): AsyncGenerator<Uint8Array> {
  for (let start = from; start < until; start += probedBytes)
    yield new Uint8Array((await read({ start, end: Math.min(until, start + probedBytes) - 1 }, signal)).bytes)
}

/** A byte before, and not far from, the page that ends at this sample or earlier. */
async function before(granule: number, file: OpenFile, { serial, sampleRate }: Stream, marks: Mark[]): Promise<number> {
  for (let probe = 0; probe < maxProbes; probe++) {
    const above = marks.findIndex((mark) => mark.granule > granule)
    const [low, high] = [marks[above - 1], marks[above]]
    if (!low || !high) break
    const [passed, bytes] = [granule - low.granule, high.byte - low.byte]
    if (passed < nearSeconds * sampleRate || bytes < 2 * probedBytes) return low.byte
    const share = probe < guesses ? passed / (high.granule - low.granule) : 0.5
    const byte = Math.floor(low.byte + share * bytes - probedBytes / 2)
    if (byte <= low.byte) return low.byte
    const found = await firstGranule(file, byte, serial)
    if (found === undefined) break
    marks.splice(above, 0, { granule: found, byte })
  }
  return 0
}

async function firstGranule(file: OpenFile, byte: number, serial: number): Promise<number | undefined> {
  for await (const page of pagesFrom(file, byte))
    if (page.serial === serial && page.granule !== undefined) return page.granule
  return undefined
}
