import { latin1 } from '../bytes.js'
import { badInput, type StemworkError } from '../../engine/errors.js'
import { findAdts, findMpegAudio } from './mpeg/frame-sync.js'
import { oggCodecOf } from './ogg/ogg-stream.js'

/**
 * Formats that can be opened, with the demuxers of ffmpeg, which alone can decode some of their codecs. `mp4` covers
 * M4A, MOV and 3GP; `wav` covers RF64, BW64, RIFX and Wave64.
 */
export const demuxers = {
  wav: 'wav',
  aiff: 'aiff',
  au: 'au',
  mp3: 'mp3',
  aac: 'aac',
  flac: 'flac',
  'ogg-flac': 'ogg',
  vorbis: 'ogg',
  opus: 'ogg',
  mp4: 'mov',
  webm: 'matroska',
  mkv: 'matroska',
  avi: 'avi',
  caf: 'caf',
  wma: 'asf',
  amr: 'amr',
  tta: 'tta',
  ac3: 'ac3',
  eac3: 'eac3',
  dts: 'dts',
  wavpack: 'wv',
} as const

export type InputFormat = keyof typeof demuxers

/** Formats of audio, or video with sound, that only ffmpeg can decode: a name for messages and ffmpeg's demuxer. */
export const foreignFormats = {
  'mpeg-ts': { name: 'an MPEG transport stream (TS)', demuxer: 'mpegts' },
  'mpeg-ps': { name: 'an MPEG program stream (MPG, VOB)', demuxer: 'mpeg' },
  flv: { name: 'a Flash video (FLV)', demuxer: 'flv' },
  wmv: { name: 'a Windows Media video (WMV)', demuxer: 'asf' },
  realmedia: { name: 'a RealMedia file', demuxer: 'rm' },
  mxf: { name: 'an MXF video', demuxer: 'mxf' },
  'other-ogg': { name: 'an Ogg file without Vorbis, Opus or FLAC', demuxer: 'ogg' },
  'free-mp3': { name: 'an MP3 file of "free format" bit rate', demuxer: 'mp3' },
  ape: { name: "a Monkey's Audio file", demuxer: 'ape' },
  musepack: { name: 'a Musepack file', demuxer: 'mpc' },
  musepack8: { name: 'a Musepack file', demuxer: 'mpc8' },
  dsf: { name: 'a DSD file', demuxer: 'dsf' },
  dff: { name: 'a DSD file', demuxer: 'iff' },
  truehd: { name: 'a TrueHD file', demuxer: 'truehd' },
  tak: { name: 'a TAK file', demuxer: 'tak' },
  voc: { name: 'a Creative Voice file', demuxer: 'voc' },
} as const

export type ForeignFormat = keyof typeof foreignFormats

/** Bytes from the start of a file that `sniff` expects; it also works with fewer. */
export const sniffBytes = 64 * 1024

interface Signature {
  bytes: string
  at?: number
}

/** Signatures of formats that can be opened; the first that matches wins. Bytes are given as latin-1 text. */
const audioSignatures: readonly (readonly [InputFormat | ForeignFormat, ...Signature[]])[] = [
  ['wav', { bytes: 'RIFF' }, { bytes: 'WAVE', at: 8 }],
  ['wav', { bytes: 'RF64' }, { bytes: 'WAVE', at: 8 }],
  ['wav', { bytes: 'BW64' }, { bytes: 'WAVE', at: 8 }],
  ['wav', { bytes: 'RIFX' }, { bytes: 'WAVE', at: 8 }],
  ['wav', { bytes: 'riff\x2e\x91\xcf\x11' }, { bytes: 'wave', at: 24 }],
  ['avi', { bytes: 'RIFF' }, { bytes: 'AVI ', at: 8 }],
  ['aiff', { bytes: 'FORM' }, { bytes: 'AIFF', at: 8 }],
  ['aiff', { bytes: 'FORM' }, { bytes: 'AIFC', at: 8 }],
  ['flac', { bytes: 'fLaC' }],
  ['caf', { bytes: 'caff' }],
  ['wma', { bytes: '\x30\x26\xb2\x75\x8e\x66\xcf\x11' }],
  ['amr', { bytes: '#!AMR' }],
  ['tta', { bytes: 'TTA1' }],
  ['au', { bytes: '.snd' }],
  ['wavpack', { bytes: 'wvpk' }],
  ['dts', { bytes: '\x7f\xfe\x80\x01' }],
  ['flv', { bytes: 'FLV\x01' }],
  ['mpeg-ps', { bytes: '\0\0\x01\xba' }],
  ['realmedia', { bytes: '.RMF' }],
  ['mxf', { bytes: '\x06\x0e\x2b\x34\x02\x05\x01\x01' }],
  ['ape', { bytes: 'MAC ' }],
  ['musepack8', { bytes: 'MPCK' }],
  ['musepack', { bytes: 'MP+' }],
  ['dsf', { bytes: 'DSD ' }],
  ['dff', { bytes: 'FRM8' }],
  ['truehd', { bytes: '\xf8\x72\x6f\xba', at: 4 }],
  ['tak', { bytes: 'tBaK' }],
  ['voc', { bytes: 'Creative Voice File' }],
]

/** Signatures of files that are refused, with their names for messages. */
const refusedSignatures: readonly (readonly [string, ...Signature[]])[] = [
  ['a PNG image', { bytes: '\x89PNG' }],
  ['a JPEG image', { bytes: '\xff\xd8\xff' }],
  ['a GIF image', { bytes: 'GIF8' }],
  ['a WebP image', { bytes: 'RIFF' }, { bytes: 'WEBP', at: 8 }],
  ['a TIFF image', { bytes: 'II*\0' }],
  ['a TIFF image', { bytes: 'MM\0*' }],
  ['a PDF document', { bytes: '%PDF' }],
  ['a ZIP archive', { bytes: 'PK\x03\x04' }],
  ['a ZIP archive', { bytes: 'PK\x05\x06' }],
  ['a gzip archive', { bytes: '\x1f\x8b' }],
  ['a 7-Zip archive', { bytes: '7z\xbc\xaf\x27\x1c' }],
  ['a RAR archive', { bytes: 'Rar!' }],
  ['a program', { bytes: '\x7fELF' }],
  ['a MIDI file: notes, not audio', { bytes: 'MThd' }],
]

const imageBrands = new Set(['heic', 'heix', 'hevc', 'mif1', 'msf1', 'avif', 'avis'])

/**
 * Detects the format from a file's first bytes.
 *
 * @param head the file's first `sniffBytes` bytes, after an ID3v2 tag if it starts with one
 * @throws StemworkError `BAD_INPUT` with `no_audio` for an empty file, `unsupported_format` for anything that is not
 * audio
 */
// oxlint-disable-next-line complexity -- signatures, in the order in which they are tried
export function sniff(head: Uint8Array): InputFormat | ForeignFormat {
  if (head.length === 0) throw badInput('no_audio', 'The file is empty; expected an audio file.')
  const text = latin1(head)
  const matches = (signatures: readonly Signature[]) =>
    signatures.every(({ bytes, at = 0 }) => text.startsWith(bytes, at))

  for (const [format, ...signatures] of audioSignatures) if (matches(signatures)) return format
  if (text.startsWith('ftyp', 4)) {
    if (imageBrands.has(text.slice(8, 12))) throw refused('a HEIF or AVIF image')
    return 'mp4'
  }
  // QuickTime files may lack `ftyp` and start with any of these boxes.
  if (['moov', 'mdat', 'wide', 'free', 'skip', 'pnot'].includes(text.slice(4, 8))) return 'mp4'
  if (text.startsWith('\x1a\x45\xdf\xa3')) return text.slice(0, 4096).includes('webm') ? 'webm' : 'mkv'
  for (const [name, ...signatures] of refusedSignatures) if (matches(signatures)) throw refused(name)
  if (text.startsWith('OggS')) return sniffOgg(head, text)
  // Cameras put a time of four bytes before each packet.
  if ([0, 4].some((at) => [0, 1, 2].every((packet) => text[at + packet * (188 + at)] === 'G'))) return 'mpeg-ts'
  if (text.startsWith('\x0b\x77')) return (head[5] ?? 0) >> 3 > 10 ? 'eac3' : 'ac3'
  const words = refusedText(text)
  if (words) throw refused(words)

  const mpeg = findMpegAudio(head)
  if (mpeg?.isFreeFormat) return 'free-mp3'
  if (mpeg) return 'mp3'
  if (findAdts(head) !== undefined) return 'aac'
  throw refused('not audio in any known format')
}

/** Every stream of an Ogg file begins with its own page that names the codec; video often comes first. */
function sniffOgg(head: Uint8Array, text: string): InputFormat | ForeignFormat {
  for (let page = 0; page >= 0 && page + 27 < head.length; page = text.indexOf('OggS', page + 1)) {
    const codec = (head[page + 5]! & 2) === 0 ? undefined : oggCodecOf(head.subarray(page + 27 + head[page + 26]!))
    if (codec && codec !== 'speex') return codec
  }
  return 'other-ogg'
}

const examples = 'for example WAV, FLAC, MP3, M4A, AAC, Ogg, Opus or AIFF'

function refused(what: string): StemworkError {
  return badInput('unsupported_format', `The file is ${what}; expected audio, ${examples}.`)
}

/** Identifies text files. Playlists are the most common mistake, because a music player opens them like a song. */
function refusedText(text: string): string | undefined {
  const start = text.slice(0, 2048)
  if (/[\x00-\x08\x0e-\x1a]/.test(start)) return undefined
  const trimmed = start.replace(/^\xef\xbb\xbf/, '').trimStart()
  if (/^#EXT(M3U|INF)/i.test(trimmed)) return 'a playlist (M3U), which only names audio files'
  if (/^\[playlist\]/i.test(trimmed)) return 'a playlist (PLS), which only names audio files'
  if (/^(<\?xml[^>]*>\s*)?<(playlist|asx|smil)\b/i.test(trimmed)) return 'a playlist, which only names audio files'
  if (/^(REM|TITLE|PERFORMER|FILE|CATALOG)\s.*\bFILE\s+"|^FILE\s+"/is.test(trimmed))
    return 'a cue sheet, which only names audio files'
  if (/^(<!doctype html|<html|<head|<body)/i.test(trimmed))
    return 'an HTML page; its address is probably not that of the audio file itself'
  if (/^<(\?xml|svg)/i.test(trimmed)) return 'an XML document'
  if (/^[{[]\s*(["{[\]}]|-?\d|true|false|null)/.test(trimmed)) return 'a JSON document'
  if (/^--[^\r\n]{2,}\r?\ncontent-disposition:/i.test(trimmed))
    return 'an unopened multipart form; upload the file itself'
  if (/^[\x09\x0a\x0d\x20-\x7e]+$/.test(trimmed) && trimmed.length > 0) {
    const namesAudio = /^(https?:\/\/\S+|\S.*\.(mp3|flac|wav|m4a|ogg|opus|aac))\s*$/im.test(trimmed)
    return namesAudio ? 'a playlist, which only names audio files' : 'a text file'
  }
  return undefined
}
