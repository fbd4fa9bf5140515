import { latin1, viewOf } from '../bytes.js'
import type { FileBytes } from './file-bytes.js'
import { findMpegAudio } from './frame-sync.js'
import type { InputFormat } from './sniff.js'

/**
 * The length that a compressed file states, in seconds, or undefined if it states none or an implausible one.
 *
 * @param head the file's first bytes, after an ID3v2 tag
 */
export async function statedSeconds(
  file: FileBytes,
  format: InputFormat,
  head: Uint8Array,
): Promise<number | undefined> {
  switch (format) {
    case 'mp3':
      return mp3Seconds(head)
    case 'vorbis':
    case 'opus':
      return oggSeconds(head, await file.read(Math.max(0, file.size - tailBytes), tailBytes), format)
    default:
      return undefined
  }
}

/** An Ogg page is at most 65,307 bytes long, so the last one begins within this range. */
const tailBytes = 66_000
/** A stream cut from a broadcast counts from the broadcast's start. */
const latestStartSeconds = 60

/** From the frame count of the `Xing` or `Info` tag in the first frame (Xing's VBR header; also written by LAME). */
function mp3Seconds(head: Uint8Array): number | undefined {
  const sync = findMpegAudio(head)
  if (!sync) return undefined
  const { position, sampleRate, samplesPerFrame } = sync
  const bytes = head.subarray(position, position + 200)
  const text = latin1(bytes)
  const tag = Math.max(text.indexOf('Xing'), text.indexOf('Info'))
  if (tag < 0 || tag + 12 > bytes.length || (viewOf(bytes).getUint32(tag + 4) & 1) === 0) return undefined
  return (viewOf(bytes).getUint32(tag + 8) * samplesPerFrame) / sampleRate
}

/**
 * From the last page's granule position, which counts samples (RFC 3533, 6; Opus always counts at 48 kHz: RFC 7845, 4).
 */
function oggSeconds(head: Uint8Array, tail: Uint8Array, format: 'vorbis' | 'opus'): number | undefined {
  const first = viewOf(head)
  const sampleRate = format === 'opus' ? 48_000 : first.byteLength >= 44 ? first.getUint32(40, true) : 0
  if (sampleRate === 0) return undefined
  const serial = first.getUint32(14, true)
  for (const page of pagesIn(head)) {
    if (page === 0) continue
    const start = granule(first, page, serial)
    if (start !== undefined && start > latestStartSeconds * sampleRate) return undefined
  }
  let end: number | undefined
  for (const page of pagesIn(tail)) end = granule(viewOf(tail), page, serial) ?? end
  return end === undefined ? undefined : end / sampleRate
}

/** Where pages begin. */
function* pagesIn(bytes: Uint8Array): Generator<number> {
  const text = latin1(bytes)
  for (let page = text.indexOf('OggS'); page >= 0; page = text.indexOf('OggS', page + 1)) yield page
}

function granule(bytes: DataView, page: number, serial: number): number | undefined {
  if (page + 18 > bytes.byteLength || bytes.getUint32(page + 14, true) !== serial) return undefined
  const value = bytes.getBigInt64(page + 6, true)
  return value > 0n ? Number(value) : undefined
}
