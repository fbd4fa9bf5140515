import type { AudioStream } from '../../dsp/audio-stream.js'
import { type CodecLoader, type EncodedPieces, mostLinks, openLinks } from '../codec-stream.js'
import { damagedFile } from '../damaged-file.js'
import type { FileBytes } from '../file-bytes.js'
import { readStreamInfo } from '../flac/flac-frame.js'
import { openFlacPieces } from '../flac/flac-reader.js'
import { bytesOf, mostGaps, openParts, positionsOf } from './ogg-gaps.js'
import { packetsOf } from './ogg-pages.js'
import { oggLossText, streamPages, type OggCodec, type OggLosses } from './ogg-stream.js'
import { withWarnings } from '../with-warnings.js'

/**
 * Opens the sound of an Ogg file, which may also hold pictures. Pages with a wrong checksum never reach a decoder.
 *
 * @throws UndecodedError, or StemworkError `BAD_INPUT` `decode_failed`, when there is no audio
 */
export async function openOgg(
  file: FileBytes,
  codec: OggCodec,
  pieceBytes: number,
  load: CodecLoader,
): Promise<AudioStream> {
  const losses = noLosses()
  const pages = (counted: OggLosses) => streamPages(file.pieces({ pieceBytes }), codec, counted)
  // FLAC frames have their own numbers, by which gaps are filled.
  if (codec === 'ogg-flac') return withLosses(await openOggFlac(pages(losses)), losses, () => '')
  const decoder = { codec: codec === 'vorbis' ? 'oga' : codec, load }
  const scan = noLosses()
  for await (const _ of pages(scan));
  if (scan.gaps === 0 || scan.gaps > mostGaps) {
    // The decoder of Vorbis cuts the padding at the end of the file, but not at the end of each link.
    const isChain = codec === 'vorbis' && scan.links > 1
    const links = isChain ? linksOf(pages(losses)) : [bytesOf(pages(losses))]
    const stream = await openLinks({ ...decoder, format: codec }, links)
    return withLosses(stream, losses, () => ' and were left out, so what follows comes earlier')
  }
  const positions = await positionsOf(pages(noLosses()), decoder)
  const silent = { seconds: 0 }
  const stream = await openParts(pages(losses), positions, decoder, silent)
  return withLosses(
    { ...stream, format: codec },
    losses,
    () => `, and ${silent.seconds.toFixed(2)} seconds are silent instead`,
  )
}

function noLosses(): OggLosses {
  return { gaps: 0, links: 0, hasEnd: false }
}

function withLosses(stream: AudioStream, losses: OggLosses, instead: () => string): AudioStream {
  return withWarnings(stream, () => oggLossText(losses, instead()))
}

/** Each link must be read before the next. */
async function* linksOf(pages: ReturnType<typeof streamPages>): AsyncGenerator<EncodedPieces, void, undefined> {
  let next = await pages.next()
  for (let links = 1; !next.done; links++) {
    const link = (async function* (): EncodedPieces {
      for (let isStart = true; !next.done; isStart = false) {
        if (!isStart && next.value.isFirst && links < mostLinks) return
        yield next.value.bytes
        next = await pages.next()
      }
    })()
    yield link
    for await (const _ of link);
  }
}

/**
 * Bytes before the stream's own header in the first packet (the mapping of FLAC into Ogg, version 1.0; RFC 9639, 10.1).
 */
const mappingBytes = 9

async function openOggFlac(pages: ReturnType<typeof streamPages>): Promise<AudioStream> {
  const first = await pages.next()
  const head = first.done ? undefined : packetsOf(first.value).packets[0]
  // The marker, the header of the first metadata block, and its content.
  if (!head || head.length < mappingBytes + 4 + 4 + 34)
    throw damagedFile("The header of the file's FLAC stream is missing or cut off.")
  const { info, sampleCount } = readStreamInfo(head.subarray(mappingBytes + 8))
  return openFlacPieces(framesOf(pages), info, sampleCount, 'ogg-flac')
}

/** The packets that hold frames; those before them hold metadata. */
async function* framesOf(pages: ReturnType<typeof streamPages>): AsyncGenerator<Uint8Array, void, undefined> {
  let isMetadata = true
  for await (const page of pages) {
    isMetadata ||= page.isFirst
    for (const [index, packet] of packetsOf(page).packets.entries()) {
      const isStart = index > 0 || !page.isContinued
      if (isStart && packet[0] === 0xff) isMetadata = false
      if (!isMetadata) yield packet
    }
  }
}
