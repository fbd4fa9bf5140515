import { latin1, viewOf } from '../../bytes.js'
import type { Speaker } from '../../dsp/audio-stream.js'
import { readChunks, type Chunk, type ChunkLayout } from './chunks.js'
import { damagedFile } from '../damaged-file.js'
import type { ReadableBytes } from '../file-bytes.js'

/** The format chunk of a WAV file. */
export interface WavFormat {
  /** 1 integer, 3 float, 6 A-law, 7 mu-law, others compressed; the inner format of WAVE_FORMAT_EXTENSIBLE. */
  formatTag: number
  channelCount: number
  sampleRate: number
  /** Bytes of one sample of every channel. */
  blockAlign: number
  speakers: readonly Speaker[] | undefined
}

/** Content of a WAV file's header. */
export interface WavHeader extends WavFormat {
  layout: ChunkLayout
  dataStart: number
  /**
   * Stated size of the audio in bytes; undefined if the writer left it unset, so that the audio runs to the end of the
   * file.
   */
  dataBytes: number | undefined
}

const formatExtensible = 0xfffe
const unset = 0xffff_ffff

/**
 * Reads the header of WAV, RF64, BW64, RIFX (big-endian) or Wave64 at `start`, with its chunks in any order.
 *
 * @throws StemworkError `BAD_INPUT` `decode_failed` for a header that is broken or cut off
 */
export async function readWavHeader(file: ReadableBytes, start: number): Promise<WavHeader> {
  const { layout, riffEnd } = await readRiff(file, start)
  let format: WavFormat | undefined
  let longDataBytes: number | undefined
  let data: Pick<WavHeader, 'dataStart' | 'dataBytes'> | undefined
  const chunks = readChunks(file, start + (layout === 'wave64' ? 40 : 12), layout)
  for (let next = await chunks.next(); !next.done && !(format && data);) {
    const chunk = next.value
    let taken: number | undefined
    if (chunk.id === 'ds64') longDataBytes = await readLongDataBytes(file, chunk)
    if (chunk.id === 'fmt ') format = readFormat(await contentOf(file, chunk, 40), layout !== 'big-endian')
    if (chunk.id === 'data' && !data) {
      const stated = chunk.size === unset ? longDataBytes : chunk.size
      const dataBytes = stated === 0 ? await impliedBytes(file, chunk, riffEnd) : stated
      data = { dataStart: chunk.body, dataBytes }
      taken = dataBytes ?? file.size - chunk.body
    }
    next = await chunks.next(taken)
  }
  if (format && data) return { ...format, ...data, layout }
  throw damagedFile(
    'The file starts like a WAV file, but its format or data chunk is missing; it is damaged or was cut off.',
  )
}

/** Reads the outermost chunk: the layout of the other chunks, and its end if it states one. */
async function readRiff(file: ReadableBytes, start: number): Promise<{ layout: ChunkLayout; riffEnd: number }> {
  const head = await file.read(start, 12)
  const name = latin1(head, 0, 4)
  const layout = name === 'riff' ? 'wave64' : name === 'RIFX' ? 'big-endian' : 'riff'
  const riffBytes = layout === 'wave64' ? unset : viewOf(head).getUint32(4, layout === 'riff')
  return { layout, riffEnd: riffBytes === 0 || riffBytes === unset ? Infinity : start + 8 + riffBytes }
}

/**
 * The size of a data chunk that states 0. Programs that stream a WAV file leave its size unset, and some set only the
 * outer one afterwards. The chunk is really empty only if nothing or another chunk follows.
 */
async function impliedBytes(file: ReadableBytes, { body }: Chunk, riffEnd: number): Promise<number | undefined> {
  if (riffEnd === Infinity || riffEnd <= body) return file.size > body ? undefined : 0
  const next = await file.read(body, 8)
  const isChunk = next.length === 8 && /^[\x20-\x7e]{4}$/.test(latin1(next, 0, 4))
  return isChunk && body + 8 + viewOf(next).getUint32(4, true) <= file.size ? 0 : riffEnd - body
}

async function contentOf(file: ReadableBytes, { body, size }: Chunk, most: number): Promise<DataView> {
  return viewOf(await file.read(body, Math.min(size, most)))
}

async function readLongDataBytes(file: ReadableBytes, chunk: Chunk): Promise<number | undefined> {
  const view = await contentOf(file, chunk, 24)
  return view.byteLength < 16 ? undefined : Number(view.getBigUint64(8, true))
}

function readFormat(body: DataView, littleEndian: boolean): WavFormat {
  if (body.byteLength < 16) throw damagedFile("The WAV file's format chunk is cut off.")
  const tag = body.getUint16(0, littleEndian)
  const channelCount = body.getUint16(2, littleEndian)
  const sampleRate = body.getUint32(4, littleEndian)
  const bits = body.getUint16(14, littleEndian)
  const isExtensible = tag === formatExtensible && body.byteLength >= 26
  const formatTag = isExtensible ? body.getUint16(24, littleEndian) : tag
  const aligned = body.getUint16(12, littleEndian)
  const blockAlign =
    aligned > 0 && aligned % channelCount === 0 ? aligned : channelCount * Math.ceil(bits / 8) || aligned
  if (channelCount === 0 || channelCount > 255 || sampleRate === 0 || blockAlign === 0) {
    throw damagedFile(`The WAV file's header is damaged: ${channelCount} channels at ${sampleRate} Hz.`)
  }
  const speakers = isExtensible ? speakersOfMask(body.getUint32(20, littleEndian), channelCount) : undefined
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

/** Undefined if the mask does not name all channels. */
export function speakersOfMask(mask: number, channelCount: number): Speaker[] | undefined {
  const speakers: Speaker[] = []
  for (let bit = 0; bit < maskSpeakers.length; bit++) {
    const speaker = maskSpeakers[bit]
    if (speaker && mask & (1 << bit)) speakers.push(speaker)
  }
  // A mask that does not name every channel says nothing reliable about the others.
  return speakers.length === channelCount ? speakers : undefined
}
