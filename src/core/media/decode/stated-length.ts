import { latin1, viewOf } from '../bytes.js'
import type { FileBytes } from './file-bytes.js'
import { findMpegAudio } from './mpeg/frame-sync.js'
import { readMp3Info } from './mpeg/mp3-info.js'
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
    case 'wavpack':
      return wavpackSeconds(viewOf(head))
    case 'tta':
      return head.length < 18 ? undefined : viewOf(head).getUint32(14, true) / viewOf(head).getUint32(10, true)
    case 'wma':
      return asfSeconds(head)
    default:
      return undefined
  }
}

/** An Ogg page is at most 65,307 bytes long, so the last one begins within this range. */
const tailBytes = 66_000
/** A stream cut from a broadcast counts from the broadcast's start. */
const latestStartSeconds = 60

/**
 * From the frame count of the `Xing` or `Info` tag in the first frame (Xing's VBR header; also written by LAME), less
 * the padding that LAME's extension of it states.
 */
function mp3Seconds(head: Uint8Array): number | undefined {
  const sync = findMpegAudio(head)
  if (!sync) return undefined
  const { position, sampleRate, samplesPerFrame } = sync
  const { frameCount, delay = 0, padding = 0 } = readMp3Info(head.subarray(position)) ?? {}
  // At low rates, the padding is too long to be ignored.
  return frameCount === undefined ? undefined : (frameCount * samplesPerFrame - delay - padding) / sampleRate
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

/** Positions of pages. */
function* pagesIn(bytes: Uint8Array): Generator<number> {
  const text = latin1(bytes)
  for (let page = text.indexOf('OggS'); page >= 0; page = text.indexOf('OggS', page + 1)) yield page
}

function granule(bytes: DataView, page: number, serial: number): number | undefined {
  if (page + 18 > bytes.byteLength || bytes.getUint32(page + 14, true) !== serial) return undefined
  const value = bytes.getBigInt64(page + 6, true)
  return value > 0n ? Number(value) : undefined
}

const wavpackRates = [
  6000, 8000, 9600, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200, 96000, 192000,
]

/** From the header of the first block (https://www.wavpack.com/WavPack5FileFormat.pdf, 2). */
function wavpackSeconds(head: DataView): number | undefined {
  if (head.byteLength < 28) return undefined
  const samples = head.getUint32(12, true)
  const sampleRate = wavpackRates[(head.getUint32(24, true) >> 23) & 15]
  return samples === 0xffff_ffff || sampleRate === undefined ? undefined : samples / sampleRate
}

/** From the file properties object (ASF specification, 3.2): the play duration without the time to fill a buffer. */
function asfSeconds(head: Uint8Array): number | undefined {
  const at = latin1(head).indexOf('\xa1\xdc\xab\x8c\x47\xa9\xcf\x11\x8e\xe4\x00\xc0\x0c\x20\x53\x65')
  if (at < 0 || at + 92 > head.length) return undefined
  const view = viewOf(head)
  const isBroadcast = (view.getUint8(at + 88) & 1) === 1
  return isBroadcast ? undefined : Number(view.getBigUint64(at + 64, true)) / 1e7 - view.getUint32(at + 80, true) / 1e3
}

/**
 * Returns the file size that the first bytes state, for formats that state no length there; undefined if they say that
 * it is unknown, as in a stream.
 */
export function statedBytes(format: string, head: Uint8Array): number | undefined {
  switch (format) {
    case 'wav':
    case 'avi':
      return riffBytes(head)
    case 'caf':
      return cafBytes(head)
    case 'webm':
    case 'mkv':
      return matroskaBytes(head)
    default:
      return undefined
  }
}

function riffBytes(head: Uint8Array): number | undefined {
  const size = viewOf(head).getUint32(4, true)
  return latin1(head, 0, 4) === 'RIFF' && size < 0xffff_ffff ? size + 8 : undefined
}

/** Up to the end of the audio, after which only tags may come. */
function cafBytes(head: Uint8Array): number | undefined {
  for (let at = 8; at + 12 <= head.length;) {
    const end = at + 12 + Number(viewOf(head).getBigInt64(at + 4))
    if (end < at + 12) return undefined
    if (latin1(head, at, at + 4) === 'data') return end
    at = end
  }
  return undefined
}

/** Up to the end of the segment (RFC 8794, 4 and 6); leading zeros of its size count the bytes after the first. */
function matroskaBytes(head: Uint8Array): number | undefined {
  const at = latin1(head).indexOf('\x18\x53\x80\x67') + 4
  const bytes = Math.clz32(head[at] ?? 0) - 23
  if (at < 4 || bytes > 8 || at + 8 > head.length) return undefined
  const unknown = (1n << BigInt(7 * bytes)) - 1n
  const size = (viewOf(head).getBigUint64(at) >> BigInt(64 - 8 * bytes)) & unknown
  return size === unknown ? undefined : at + bytes + Number(size)
}
