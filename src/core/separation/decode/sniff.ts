import { badInput, type StemworkError } from '../../engine/errors.js'
import { findAdts, findMpegAudio } from './frame-sync.js'

/** Formats that can be opened. `mp4` covers M4A, MOV and 3GP. */
export type InputFormat =
  | 'wav'
  | 'aiff'
  | 'mp3'
  | 'aac'
  | 'flac'
  | 'ogg-flac'
  | 'vorbis'
  | 'opus'
  | 'mp4'
  | 'webm'
  | 'mkv'
  | 'avi'
  | 'caf'
  | 'wma'
  | 'amr'
  | 'tta'
  | 'ac3'
  | 'eac3'

/** Bytes from the start of a file that `sniff` expects; it also works with fewer. */
export const sniffBytes = 64 * 1024

interface Signature {
  bytes: string
  at?: number
}

/** Signatures of what can be opened; the first that matches wins. Bytes are given as latin-1 text. */
const audioSignatures: readonly (readonly [InputFormat, ...Signature[]])[] = [
  ['wav', { bytes: 'RIFF' }, { bytes: 'WAVE', at: 8 }],
  ['wav', { bytes: 'RF64' }, { bytes: 'WAVE', at: 8 }],
  ['wav', { bytes: 'BW64' }, { bytes: 'WAVE', at: 8 }],
  ['avi', { bytes: 'RIFF' }, { bytes: 'AVI ', at: 8 }],
  ['aiff', { bytes: 'FORM' }, { bytes: 'AIFF', at: 8 }],
  ['aiff', { bytes: 'FORM' }, { bytes: 'AIFC', at: 8 }],
  ['flac', { bytes: 'fLaC' }],
  ['opus', { bytes: 'OggS' }, { bytes: 'OpusHead', at: 28 }],
  ['ogg-flac', { bytes: 'OggS' }, { bytes: '\x7fFLAC', at: 28 }],
  ['vorbis', { bytes: 'OggS' }, { bytes: '\x01vorbis', at: 28 }],
  ['caf', { bytes: 'caff' }],
  ['wma', { bytes: '\x30\x26\xb2\x75\x8e\x66\xcf\x11' }],
  ['amr', { bytes: '#!AMR' }],
  ['tta', { bytes: 'TTA1' }],
]

/** Signatures of what is refused by its own name. */
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
  ['a Speex file', { bytes: 'OggS' }, { bytes: 'Speex   ', at: 28 }],
  ['an Ogg file without Vorbis, Opus or FLAC audio first', { bytes: 'OggS' }],
  ['a Sony Wave64 file', { bytes: 'riff\x2e\x91\xcf\x11' }],
  ['a Sun audio (.au) file', { bytes: '.snd' }],
  ["a Monkey's Audio file", { bytes: 'MAC ' }],
  ['a WavPack file', { bytes: 'wvpk' }],
  ['a Musepack file', { bytes: 'MPCK' }],
  ['a Musepack file', { bytes: 'MP+' }],
  ['a DSD file', { bytes: 'DSD ' }],
  ['a DSD file', { bytes: 'FRM8' }],
  ['a Flash video', { bytes: 'FLV\x01' }],
  ['an MPEG program stream', { bytes: '\0\0\x01\xba' }],
  ['a RealMedia file', { bytes: '.RMF' }],
]

const imageBrands = new Set(['heic', 'heix', 'hevc', 'mif1', 'msf1', 'avif', 'avis'])

/**
 * Detects the format from a file's first bytes.
 *
 * @param head the file's first `sniffBytes` bytes, after an ID3v2 tag if it starts with one
 * @throws StemworkError `BAD_INPUT` with `no_audio` for an empty file, `unsupported_format` for anything that is not audio
 */
export function sniff(head: Uint8Array): InputFormat {
  if (head.length === 0) throw badInput('no_audio', 'The file is empty; expected an audio file.')
  const text = Buffer.from(head.buffer, head.byteOffset, head.byteLength).toString('latin1')
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
  if (text.startsWith('G') && text[188] === 'G' && text[376] === 'G') throw refused('an MPEG transport stream')
  if (text.startsWith('\x0b\x77')) return (head[5] ?? 0) >> 3 > 10 ? 'eac3' : 'ac3'
  const words = refusedText(text)
  if (words) throw refused(words)

  const mpeg = findMpegAudio(head)
  if (mpeg?.isFreeFormat) throw refused('an MP3 file of "free format" bit rate')
  if (mpeg) return 'mp3'
  if (findAdts(head) !== undefined) return 'aac'
  throw refused('not audio in any known format')
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
