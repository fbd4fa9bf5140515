import { latin1 } from '../../bytes.js'
import { packetsOf, readPages, withoutParts, type OggPage } from './ogg-pages.js'

/** Losses of an Ogg stream; complete when its pages have been read. */
export interface OggLosses {
  gaps: number
  /** Streams of the codec that follow each other, as in recordings of a radio station; the first one included. */
  links: number
  hasEnd: boolean
}

/** A page of a stream, and whether pages are missing before it. */
export interface StreamPage extends OggPage {
  isAfterGap: boolean
}

/** Beginning of the first packet of each codec. */
const identifications = {
  vorbis: '\x01vorbis',
  opus: 'OpusHead',
  'ogg-flac': '\x7fFLAC',
  speex: 'Speex   ',
} as const

export type OggCodec = keyof typeof identifications

/** The codec that a stream's first packet announces, if it is sound in a known one. */
export function oggCodecOf(packet: Uint8Array): OggCodec | undefined {
  const text = latin1(packet, 0, Math.min(8, packet.length))
  const codecs = Object.keys(identifications) as OggCodec[]
  return codecs.find((codec) => text.startsWith(identifications[codec]))
}

/**
 * The pages of the first stream with that codec, reduced to whole packets from intact pages: a part of a packet whose
 * rest was lost would decode to noise. A stream of the same codec that begins after the end of the first one counts as
 * its continuation.
 */
export async function* streamPages(
  pieces: AsyncIterable<Uint8Array>,
  codec: OggCodec,
  losses: OggLosses,
): AsyncGenerator<StreamPage, void, undefined> {
  let serial: number | undefined
  let held: OggPage | undefined
  let isAfterGap = false
  let nextSequence = 0
  for await (const page of readPages(pieces)) {
    if ((serial === undefined || losses.hasEnd) && isStartOf(codec, page)) {
      serial = page.serial
      nextSequence = page.sequence
      losses.hasEnd = false
      losses.links++
    }
    if (page.serial !== serial) continue
    const isGap = page.sequence !== nextSequence
    nextSequence = (page.sequence + 1) >>> 0
    losses.hasEnd ||= page.isLast
    if (isGap) losses.gaps++
    const before = held && isGap ? withoutParts(held, { first: false, last: true }) : held
    if (before) {
      yield { ...before, isAfterGap }
      isAfterGap = false
    }
    isAfterGap ||= isGap
    held = isGap ? withoutParts(page, { first: true, last: false }) : page
  }
  const last = held && withoutParts(held, { first: false, last: true })
  if (last) yield { ...last, isAfterGap }
}

function isStartOf(codec: OggCodec, page: OggPage): boolean {
  return page.isFirst && oggCodecOf(packetsOf(page).packets[0] ?? new Uint8Array(0)) === codec
}

/** @param instead says how the gaps were handled */
export function oggLossText({ gaps, hasEnd }: OggLosses, instead: string): string[] {
  const texts: string[] = []
  const where = gaps === 1 ? '1 position' : `${gaps} positions`
  if (gaps > 0) texts.push(`The Ogg file is damaged: pages are missing or wrong at ${where}${instead}.`)
  if (!hasEnd) texts.push('The Ogg file has no last page; it was probably cut off.')
  return texts
}
