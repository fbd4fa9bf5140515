import { latin1, viewOf } from '../bytes.js'
import type { DeclaredMono } from './codec-stream.js'
import { findAdts, findMpegAudio, mpegHeader } from './mpeg/frame-sync.js'
import { aacSetup } from './mp4/aac-setup.js'

/**
 * Whether the file calls its sound mono. Some codecs return two equal channels for mono, or one channel while both of
 * stereo are equal, so that their output does not tell. `undefined` for codecs that do.
 */
export function declaredMono(codec: string): DeclaredMono | undefined {
  const read = readers[codec]
  if (!read) return undefined
  let isMono: boolean | undefined
  return {
    look(bytes) {
      isMono ??= read(bytes)
    },
    isMono: () => isMono === true,
  }
}

/** `undefined` where the bytes do not tell. */
const readers: Record<string, (bytes: Uint8Array) => boolean | undefined> = {
  mp3: isMonoMpeg,
  aac: isMonoAdts,
  mp4: isMonoMp4,
  mkv: isMonoMatroska,
  avi: isMonoAvi,
  wma: isMonoAsf,
}

/** Number of bytes that are searched for a header. */
const searched = 64 * 1024
const headOf = (bytes: Uint8Array) => latin1(bytes, 0, Math.min(searched, bytes.length))

/** Most of the frames count: the first may be a note for players in another mode, or left over from another file. */
function isMonoMpeg(bytes: Uint8Array): boolean | undefined {
  let at = findMpegAudio(bytes)?.position
  if (at === undefined) return undefined
  let balance = 0
  for (let header = mpegHeader(bytes, at); header && header.frameBytes > 0; header = mpegHeader(bytes, at)) {
    balance += (bytes[at + 3] ?? 0) >> 6 === 3 ? 1 : -1
    at += header.frameBytes
  }
  return balance > 0
}

/**
 * One channel of AAC may be stereo if its rate may be doubled (parametric stereo of HE-AAC v2), which only its frames
 * tell. So it counts as stereo, as ffmpeg does with all HE-AAC.
 *
 * @param rate its index (ISO/IEC 14496-3, table 1.18): 6 is 24 kHz, and higher ones are lower
 */
const isMonoAac = (channels: number, rate: number) => channels === 1 && rate < 6

function isMonoAdts(bytes: Uint8Array): boolean | undefined {
  const at = findAdts(bytes)
  if (at === undefined) return undefined
  const [second, third] = bytes.subarray(at + 2)
  return isMonoAac(((second! & 1) << 2) | (third! >> 6), (second! >> 2) & 15)
}

/** AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1). Type 2 is plain AAC; an extension may say that no rate is doubled. */
function isMonoSetup([first = 0, second = 0, ...extension]: Uint8Array): boolean {
  const isPlain = extension[0] === 0x56 && extension[1] === 0xe5 && extension[2]! < 0x80
  const rate = ((first & 7) << 1) | (second >> 7)
  return first >> 3 === 2 && isMonoAac((second >> 3) & 15, isPlain ? 0 : rate)
}

/** The first bytes are the index, whose count of channels is often wrong for AAC, ALAC and MP3. */
function isMonoMp4(bytes: Uint8Array): boolean | undefined {
  const head = headOf(bytes)
  const entry = head.indexOf('stsd') + 12
  if (entry < 12) return isMonoMpeg(bytes)
  const codec = head.slice(entry + 4, entry + 8)
  if (codec === 'mp4a') {
    try {
      return isMonoSetup(aacSetup(bytes))
    } catch {
      return undefined
    }
  }
  if (codec === '.mp3') return undefined
  // The setup of ALAC comes in a box of the same name.
  if (codec === 'alac') return head.codePointAt(head.lastIndexOf('alac') + 17) === 1
  const view = viewOf(bytes)
  const isLong = view.getUint16(entry + 16) === 2
  return (isLong ? view.getUint32(entry + 48) : view.getUint16(entry + 24)) === 1
}

/** `Channels` in the `Audio` of the first sound track, after its rates and depth if these come first (RFC 9559). */
function isMonoMatroska(bytes: Uint8Array): boolean | undefined {
  const audio = /\xe1[\x80-\xbf](?:(?:\xb5|\x78\xb5)(?:\x84.{4}|\x88.{8})|\x62\x64\x81.)*\x9f\x81(.)/s
  const channels = audio.exec(headOf(bytes))?.[1]
  return channels === undefined ? undefined : channels === '\x01'
}

/** In AVI and ASF, WAVEFORMATEX describes the sound; its second field is the count of channels. */
const isMonoAt = (bytes: Uint8Array, format: number) =>
  format + 4 > bytes.length ? undefined : viewOf(bytes).getUint16(format + 2, true) === 1

function isMonoAvi(bytes: Uint8Array): boolean | undefined {
  const head = headOf(bytes)
  const format = head.indexOf('strf', head.indexOf('auds'))
  return format < 0 ? undefined : isMonoAt(bytes, format + 8)
}

/** The stream properties object (ASF specification, 3.3) of the type for sound. */
function isMonoAsf(bytes: Uint8Array): boolean | undefined {
  const type = headOf(bytes).indexOf('\x40\x9e\x69\xf8\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b')
  return type < 0 ? undefined : isMonoAt(bytes, type + 54)
}
