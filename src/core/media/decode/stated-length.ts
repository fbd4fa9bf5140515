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
  const bytes = Buffer.from(head.buffer, head.byteOffset + position, Math.min(200, head.length - position))
  const tag = Math.max(bytes.indexOf('Xing', 0, 'latin1'), bytes.indexOf('Info', 0, 'latin1'))
  if (tag < 0 || tag + 12 > bytes.length || (bytes.readUInt32BE(tag + 4) & 1) === 0) return undefined
  return (bytes.readUInt32BE(tag + 8) * samplesPerFrame) / sampleRate
}

/**
 * From the last page's granule position, which counts samples (RFC 3533, 6; Opus always counts at 48 kHz: RFC 7845, 4).
 */
function oggSeconds(head: Uint8Array, tail: Uint8Array, format: 'vorbis' | 'opus'): number | undefined {
  const first = Buffer.from(head.buffer, head.byteOffset, head.byteLength)
  const last = Buffer.from(tail.buffer, tail.byteOffset, tail.byteLength)
  const sampleRate = format === 'opus' ? 48_000 : first.length >= 44 ? first.readUInt32LE(40) : 0
  if (sampleRate === 0) return undefined
  const serial = first.readUInt32LE(14)
  for (let page = first.indexOf('OggS', 1, 'latin1'); page >= 0; page = first.indexOf('OggS', page + 1, 'latin1')) {
    const start = granule(first, page, serial)
    if (start !== undefined && start > latestStartSeconds * sampleRate) return undefined
  }
  let end: number | undefined
  for (let page = last.indexOf('OggS', 0, 'latin1'); page >= 0; page = last.indexOf('OggS', page + 1, 'latin1')) {
    end = granule(last, page, serial) ?? end
  }
  return end === undefined ? undefined : end / sampleRate
}

function granule(bytes: Buffer, page: number, serial: number): number | undefined {
  if (page + 18 > bytes.length || bytes.readUInt32LE(page + 14) !== serial) return undefined
  const value = bytes.readBigInt64LE(page + 6)
  return value > 0n ? Number(value) : undefined
}
