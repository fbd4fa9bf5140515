import { latin1, synchsafe } from '../../core/media/bytes.js'
import { findMpegAudio, type MpegHeader, mpegHeader } from '../../core/media/decode/mpeg/frame-sync.js'
import { decoderDelay, readMp3Info } from '../../core/media/decode/mpeg/mp3-info.js'
import { decodedPiece } from './decoded-piece.js'
import { decodeAudio, type OpenFile, type PcmSource, pcmSource } from './pcm.js'
import { sampleAt } from './sample-at.js'

interface Mp3Info {
  header: MpegHeader
  /** Range of the bytes of some frames, with those before that they need, and at most a few after them. */
  bytesOf(first: number, end: number): { start: number; end: number }
  frameCount: number
  /** Samples before the audio: those that the encoder added, and those that every decoder adds. */
  delay: number
  frames: number
}

const layer3 = 3
/** A frame needs earlier ones: they hold up to 511 bytes of its data, and its transform overlaps with theirs. */
const leadFrames = 3
const leadBytes = 511
/** Bytes to search for the first frame. */
const searchedBytes = 64 * 1024
/** Bytes to read at a time when frames must be searched for. */
const scannedBytes = 4 * 2 ** 20
/** Most bytes of tags after the last frame. */
const mostTrailingBytes = 2 ** 20

/**
 * Opens an MP3 file, to be read piece by piece. If its first frame states a constant bit rate (`Info`), every position
 * can be computed; otherwise (`Xing`, or nothing), all frames are located once.
 */
export async function openMp3(file: OpenFile): Promise<PcmSource | undefined> {
  const info = await infoOf(file)
  if (!info) return undefined
  const { header, frames, frameCount, delay } = info
  const { sampleRate, samplesPerFrame } = header
  return pcmSource({ sampleRate, frames }, async (from, to, signal) => {
    const first = Math.max(0, Math.floor((from + delay) / samplesPerFrame) - leadFrames)
    const end = Math.min(frameCount, Math.ceil((to + delay) / samplesPerFrame) + 1)
    const decoded = await decodeAudio(await framesOf(file, info, first, end, signal), sampleRate)
    return decodedPiece(decoded, end * samplesPerFrame - (from + delay), to - from)
  })
}

async function infoOf(file: OpenFile): Promise<Mp3Info | undefined> {
  const first = await firstFrame(file)
  if (!first) return undefined
  const { header, bytes, position } = first
  const { isConstant, frameCount, delay = 0, padding = 0 } = readMp3Info(bytes) ?? {}
  // Useless unless the number of frames is stated.
  const hasInfo = frameCount !== undefined
  const audioStart = position + (hasInfo ? header.frameBytes : 0)
  const found =
    hasInfo && isConstant
      ? { frameCount, bytesOf: constant(header, audioStart) }
      : await scan(file, audioStart, header.streamId, frameCount)
  if (!found) return undefined
  const frames = found.frameCount * header.samplesPerFrame - delay - padding
  return { ...found, header, delay: delay + (hasInfo ? decoderDelay : 0), frames }
}

/** The first frame after a tag, if this is MP3: its position, and the file from its beginning. */
async function firstFrame({ head, read, signal }: OpenFile) {
  if (head.byteLength < 10) return undefined
  const start = new Uint8Array(head)
  const tagBytes = latin1(start, 0, 3) === 'ID3' ? 10 + synchsafe(start, 6) : 0
  const searched =
    tagBytes === 0 ? head : (await read({ start: tagBytes, end: tagBytes + searchedBytes - 1 }, signal)).bytes
  const found = findMpegAudio(new Uint8Array(searched))
  const bytes = new Uint8Array(searched, found?.position ?? 0)
  const header = mpegHeader(bytes, 0)
  if (!found || !header || ((header.streamId >> 2) & 3) !== layer3 || header.frameBytes === 0) return undefined
  return { header, bytes, position: tagBytes + found.position }
}

function constant({ samplesPerFrame, bitRate, sampleRate }: MpegHeader, audioStart: number): Mp3Info['bytesOf'] {
  const at = (frame: number) => audioStart + (frame * samplesPerFrame * bitRate) / 8 / sampleRate
  return (first, end) => ({
    start: Math.max(audioStart, Math.floor(at(first)) - 1 - leadBytes),
    end: Math.ceil(at(end)) + 1,
  })
}

/** The frames from `first` to before `end`, beginning with a header. */
async function framesOf(
  { read, totalBytes }: OpenFile,
  { bytesOf, header }: Mp3Info,
  first: number,
  end: number,
  signal: AbortSignal,
): Promise<ArrayBuffer> {
  const range = bytesOf(first, end)
  const { bytes } = await read({ start: range.start, end: Math.min(totalBytes, range.end) - 1 }, signal)
  const view = new Uint8Array(bytes)
  const begin = view.findIndex((_, at) => mpegHeader(view, at)?.streamId === header.streamId)
  return bytes.slice(Math.max(0, begin), bytes.byteLength)
}

/**
 * Locates frames, up to something that is not a frame, such as tags at the end.
 *
 * @returns undefined if there are fewer frames than stated or, where nothing is stated, if much of the file is
 * something else
 */
async function scan(
  { read, totalBytes, signal }: OpenFile,
  audioStart: number,
  streamId: number,
  toldCount: number | undefined,
): Promise<Pick<Mp3Info, 'frameCount' | 'bytesOf'> | undefined> {
  const offsets: number[] = []
  let from = audioStart
  for (let isFrame = true; isFrame && from + 4 <= totalBytes;) {
    const { bytes } = await read({ start: from, end: Math.min(totalBytes, from + scannedBytes) - 1 }, signal)
    const view = new Uint8Array(bytes)
    let at = 0
    while (at + 4 <= view.length) {
      const header = mpegHeader(view, at)
      isFrame = header?.streamId === streamId && header.frameBytes > 0
      if (!header || !isFrame) break
      offsets.push(from + at)
      at += header.frameBytes
    }
    from += at
  }
  const frameCount = toldCount ?? offsets.length
  const rest = toldCount === undefined ? totalBytes - from : 0
  if (offsets.length < frameCount || rest > mostTrailingBytes) return undefined
  const bytesOf = (first: number, end: number) => {
    let lead = first
    while (lead > 0 && sampleAt(offsets, first) - sampleAt(offsets, lead) < leadBytes) lead--
    return { start: sampleAt(offsets, lead), end: offsets[end] ?? from }
  }
  return { frameCount, bytesOf }
}
