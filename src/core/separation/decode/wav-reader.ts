import { badInput } from '../../engine/errors.js'
import type { AudioBlock, AudioStream, Speaker } from '../dsp/audio-stream.js'
import type { FileBytes } from './file-bytes.js'
import { decodePcm, type PcmEncoding } from './pcm.js'
import { damagedFile } from './damaged-file.js'

/** Content of a WAV file's header, with sizes limited to what the file actually holds. */
export interface WavHeader {
  /** 1 integer, 3 float, others compressed; the inner format of WAVE_FORMAT_EXTENSIBLE. */
  formatTag: number
  channelCount: number
  sampleRate: number
  /** Bytes of one sample of every channel. */
  blockAlign: number
  speakers: readonly Speaker[] | undefined
  dataStart: number
  dataEnd: number
  /** The header itself states that there is no audio, as opposed to a file that was cut off. */
  isDeclaredEmpty: boolean
}

const readBytes = 256 * 1024
const formatInteger = 1
const formatFloat = 3
const formatExtensible = 0xfffe

/**
 * Uncompressed WAV, RF64 and BW64, of 8 to 32-bit integers and 32 or 64-bit floats. Files that were cut off or streamed (sizes of 0 or
 * 0xffffffff) are read as far as they go. Returns undefined for compressed data inside a WAV file.
 *
 * @throws StemworkError `BAD_INPUT`: `decode_failed` for a broken header, `no_audio` for an empty file.
 */
export async function openWav(file: FileBytes): Promise<AudioStream | undefined> {
  const header = await readWavHeader(file)
  const encoding = pcmEncoding(header)
  if (!encoding) return undefined
  const blockBytes = encoding.bytes * header.channelCount
  const sampleCount = Math.floor((header.dataEnd - header.dataStart) / blockBytes)
  if (sampleCount === 0) {
    throw header.isDeclaredEmpty
      ? badInput('no_audio', 'The WAV file holds no audio: its data chunk is empty.')
      : damagedFile('The WAV file ends before its audio begins; it was probably cut off in transit.')
  }
  return {
    sampleRate: header.sampleRate,
    channelCount: header.channelCount,
    sampleCount,
    format: 'wav',
    blocks: readBlocks(file, header, encoding, sampleCount * blockBytes),
    speakers: header.speakers,
  }
}

async function* readBlocks(
  file: FileBytes,
  header: WavHeader,
  encoding: PcmEncoding,
  dataBytes: number,
): AsyncGenerator<AudioBlock> {
  const blockBytes = encoding.bytes * header.channelCount
  const pieceBytes = Math.max(1, Math.floor(readBytes / blockBytes)) * blockBytes
  for await (const bytes of file.pieces({ from: header.dataStart, to: header.dataStart + dataBytes, pieceBytes })) {
    yield { channels: decodePcm(bytes, encoding, header.channelCount) }
  }
}

function pcmEncoding({ formatTag, blockAlign, channelCount }: WavHeader): PcmEncoding | undefined {
  // The container's width, not the header's bit count: 12 or 20 bits are stored left-justified in 16 or 24.
  const bytes = blockAlign / channelCount
  if (formatTag === formatFloat && (bytes === 4 || bytes === 8)) return { kind: 'float', bytes, littleEndian: true }
  if (formatTag === formatInteger && bytes === 1) return { kind: 'unsigned', bytes, littleEndian: true }
  if (formatTag === formatInteger && (bytes === 2 || bytes === 3 || bytes === 4))
    return { kind: 'signed', bytes, littleEndian: true }
  if (formatTag === formatInteger || formatTag === formatFloat) {
    const expected = 'expected 8, 16, 24 or 32 bits, or 32 or 64-bit floats'
    throw badInput(
      'unsupported_format',
      `The WAV file stores samples of ${bytes * 8} bits, which is not supported; ${expected}.`,
    )
  }
  return undefined
}

async function readWavHeader(file: FileBytes): Promise<WavHeader> {
  const start = viewOf(await file.read(0, 12))
  const riffBytes = start.getUint32(4, true)
  let format: Pick<WavHeader, 'formatTag' | 'channelCount' | 'sampleRate' | 'blockAlign' | 'speakers'> | undefined
  let longDataBytes: number | undefined
  for (let position = 12; position + 8 <= file.size;) {
    const chunk = viewOf(await file.read(position, 8 + 40))
    const id = tagAt(chunk, 0)
    const size = chunk.getUint32(4, true)
    const body = position + 8
    if (id === 'ds64' && chunk.byteLength >= 8 + 24) longDataBytes = Number(chunk.getBigUint64(16, true))
    if (id === 'fmt ')
      format = readFormat(new DataView(chunk.buffer, chunk.byteOffset + 8, Math.min(size, chunk.byteLength - 8)))
    if (id === 'data') {
      if (!format) break
      const rest = file.size - body
      const declared = size === 0xffff_ffff ? (longDataBytes ?? rest) : size
      // Programs that stream a WAV file leave both sizes unset, so an empty data chunk is only trusted if the outer size agrees.
      const isUnset =
        declared === 0 && (riffBytes === 0 || riffBytes === 0xffff_ffff || riffBytes + 8 <= body) && rest > 0
      return {
        ...format,
        dataStart: body,
        dataEnd: body + (isUnset ? rest : Math.min(declared, rest)),
        isDeclaredEmpty: declared === 0,
      }
    }
    position = body + size + (size % 2)
  }
  throw damagedFile(
    'The file starts like a WAV file, but its format or data chunk is missing; it is damaged or was cut off.',
  )
}

function readFormat(
  body: DataView,
): Pick<WavHeader, 'formatTag' | 'channelCount' | 'sampleRate' | 'blockAlign' | 'speakers'> {
  if (body.byteLength < 16) throw damagedFile("The WAV file's format chunk is cut off.")
  const tag = body.getUint16(0, true)
  const channelCount = body.getUint16(2, true)
  const sampleRate = body.getUint32(4, true)
  const bits = body.getUint16(14, true)
  const isExtensible = tag === formatExtensible && body.byteLength >= 26
  const formatTag = isExtensible ? body.getUint16(24, true) : tag
  const aligned = body.getUint16(12, true)
  const blockAlign = aligned > 0 && aligned % channelCount === 0 ? aligned : channelCount * Math.ceil(bits / 8)
  if (channelCount === 0 || channelCount > 255 || sampleRate === 0 || blockAlign === 0) {
    throw damagedFile(`The WAV file's header is damaged: ${channelCount} channels at ${sampleRate} Hz.`)
  }
  const speakers = isExtensible ? speakersOf(body.getUint32(20, true), channelCount) : undefined
  return { formatTag, channelCount, sampleRate, blockAlign, speakers }
}

/** Bits of dwChannelMask, lowest first; the channels are stored in this order. */
const maskSpeakers: readonly (Speaker | undefined)[] = [
  'left',
  'right',
  'centre',
  'lfe',
  'surroundLeft',
  'surroundRight',
  'left',
  'right',
  'surroundCentre',
  'surroundLeft',
  'surroundRight',
]

function speakersOf(mask: number, channelCount: number): Speaker[] | undefined {
  const speakers: Speaker[] = []
  for (let bit = 0; bit < maskSpeakers.length; bit++) {
    const speaker = maskSpeakers[bit]
    if (speaker && mask & (1 << bit)) speakers.push(speaker)
  }
  // A mask that does not name every channel says nothing reliable about the others.
  return speakers.length === channelCount ? speakers : undefined
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function tagAt(view: DataView, offset: number): string {
  return String.fromCharCode(
    view.getUint8(offset),
    view.getUint8(offset + 1),
    view.getUint8(offset + 2),
    view.getUint8(offset + 3),
  )
}
