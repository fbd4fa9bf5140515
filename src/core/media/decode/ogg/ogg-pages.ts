import { concat, viewOf } from '../../bytes.js'

/** A page of an Ogg file (RFC 3533, 6) whose checksum is right. */
export interface OggPage {
  serial: number
  sequence: number
  /** Samples of the stream up to the end of the last packet that ends on the page; undefined if none does. */
  granule: number | undefined
  isContinued: boolean
  isFirst: boolean
  isLast: boolean
  /** The page as it lies in the file. */
  bytes: Uint8Array
}

const headerBytes = 27
/** Bytes that only look like a page cost the time of a checksum. Beyond this limit, the rest of the file is skipped. */
const mostFailures = 10_000
const capture = [0x4f, 0x67, 0x67, 0x53]

/**
 * The intact pages of an Ogg file. Bytes between them, among them pages with a wrong checksum, are skipped.
 *
 * @param pieces the file's bytes
 */
export async function* readPages(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<OggPage, void, undefined> {
  let buffer: Uint8Array = new Uint8Array(0)
  let failures = 0
  for await (const piece of pieces) {
    buffer = buffer.length === 0 ? piece : concat([buffer, piece])
    let at = 0
    for (;;) {
      at = nextCapture(buffer, at)
      const length = pageBytes(buffer, at)
      if (length === undefined || at + length > buffer.length) break
      const page = readPage(buffer.subarray(at, at + length))
      if (page) yield page
      else if (++failures > mostFailures) return
      at += page ? length : 1
    }
    buffer = buffer.subarray(at)
  }
  // A damaged page may claim to run past the end and hide intact ones.
  for (let at = nextCapture(buffer, 1); at < buffer.length; at = nextCapture(buffer, at + 1)) {
    const length = pageBytes(buffer, at)
    const page = length !== undefined && at + length <= buffer.length && readPage(buffer.subarray(at, at + length))
    if (page) yield page
    else if (++failures > mostFailures) return
  }
}

/** Position of the next `OggS`, or of its possible beginning at the end of the bytes. */
function nextCapture(bytes: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(capture[0]!, from); at >= 0; at = bytes.indexOf(capture[0]!, at + 1)) {
    if (capture.every((byte, index) => at + index >= bytes.length || bytes[at + index] === byte)) return at
  }
  return bytes.length
}

function pageBytes(bytes: Uint8Array, at: number): number | undefined {
  if (at + headerBytes > bytes.length) return undefined
  const segments = bytes[at + 26]!
  if (at + headerBytes + segments > bytes.length) return undefined
  let length = headerBytes + segments
  for (let index = 0; index < segments; index++) length += bytes[at + headerBytes + index]!
  return length
}

function readPage(bytes: Uint8Array): OggPage | undefined {
  const view = viewOf(bytes)
  if (bytes[4] !== 0 || view.getUint32(22, true) !== checksum(bytes)) return undefined
  return {
    serial: view.getUint32(14, true),
    sequence: view.getUint32(18, true),
    granule: granuleOf(view),
    isContinued: (bytes[5]! & 1) !== 0,
    isFirst: (bytes[5]! & 2) !== 0,
    isLast: (bytes[5]! & 4) !== 0,
    bytes,
  }
}

/** -1 marks a page on which no packet ends. */
function granuleOf(view: DataView): number | undefined {
  const granule = Number(view.getBigInt64(6, true))
  return granule < 0 ? undefined : granule
}

/** The pages in bytes that hold nothing but whole pages. */
export function* pagesIn(bytes: Uint8Array): Generator<OggPage, void, undefined> {
  for (let at = 0; ;) {
    const length = pageBytes(bytes, at)
    const page = length === undefined ? undefined : readPage(bytes.subarray(at, at + length))
    if (!page || length === undefined) return
    yield page
    at += length
  }
}

/** The packets or parts of packets on a page; `isContinued`: the last one continues on the next page. */
export function packetsOf({ bytes }: Pick<OggPage, 'bytes'>): { packets: Uint8Array[]; isContinued: boolean } {
  const segments = bytes[26]!
  const packets: Uint8Array[] = []
  let start = headerBytes + segments
  let end = start
  for (let index = 0; index < segments; index++) {
    const size = bytes[headerBytes + index]!
    end += size
    if (size === 255 && index < segments - 1) continue
    packets.push(bytes.subarray(start, end))
    start = end
  }
  return { packets, isContinued: segments > 0 && bytes[headerBytes + segments - 1]! === 255 }
}

/**
 * Removes the parts of packets whose rest was lost from the start or end of a page; undefined if nothing is left.
 */
export function withoutParts(page: OggPage, { first, last }: { first: boolean; last: boolean }): OggPage | undefined {
  const { packets, isContinued } = packetsOf(page)
  const cutsLast = last && isContinued
  const kept = packets.slice(first && page.isContinued ? 1 : 0, cutsLast ? packets.length - 1 : undefined)
  if (kept.length === packets.length) return page
  if (kept.length === 0) return undefined
  const lacing = kept.flatMap((packet, index) =>
    lacingOf(packet, isContinued && !cutsLast && index === kept.length - 1),
  )
  const bytes = concat([page.bytes.subarray(0, headerBytes), Uint8Array.from(lacing), ...kept])
  if (first) bytes[5]! &= ~1
  bytes[26] = lacing.length
  viewOf(bytes).setUint32(22, checksum(bytes), true)
  return { ...page, isContinued: page.isContinued && !first, bytes }
}

function lacingOf(packet: Uint8Array, isContinued: boolean): number[] {
  const full = Array<number>(Math.floor(packet.length / 255)).fill(255)
  return isContinued ? full : [...full, packet.length % 255]
}

/** CRC-32 with the polynomial 0x04c11db7, unreflected, the checksum's own field read as zeros. */
function checksum(bytes: Uint8Array): number {
  let sum = 0
  for (let index = 0; index < bytes.length; index++) {
    const byte = index >= 22 && index < 26 ? 0 : bytes[index]
    sum = (sum << 8) ^ remainders[(sum >>> 24) ^ byte!]!
  }
  return sum >>> 0
}

const remainders = Int32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte << 24
  for (let bit = 0; bit < 8; bit++) sum = sum < 0 ? (sum << 1) ^ 0x04c1_1db7 : sum << 1
  return sum
})
