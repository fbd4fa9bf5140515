import { badInput } from '../../engine/errors.js'
import type { AudioBlock, AudioStream } from '../dsp/audio-stream.js'
import type { FileBytes } from './file-bytes.js'
import { undecodable } from './codec-stream.js'
import { decodeFrame, longestHeader, readFrameHeader, type FlacFrameHeader, type FlacStreamInfo } from './flac-frame.js'
import { damagedFile } from './damaged-file.js'

const readBytes = 64 * 1024
const widestBits = 24
/** Silence that replaces lost frames is returned in blocks of at most this many samples. */
const silenceSamples = 65_536

/**
 * Native FLAC, exactly as it was encoded: integers are divided by 2^(bits-1). Every frame is checked by its CRC-16; damaged ones are
 * skipped and replaced by silence of the same length, so that the rest stays in time. (The streaming decoder of
 * `audio-decode` 3 silently drops about one frame of 4,096 samples in three thousand, and scales by 2^(bits-1) - 1.)
 *
 * @param start position of the `fLaC` marker
 * @throws StemworkError `BAD_INPUT`: `decode_failed` for a broken header or when no frame can be decoded
 */
export async function openFlac(file: FileBytes, start: number): Promise<AudioStream> {
  const { info, firstByte } = await readMetadata(file, start)
  const blocks = decodeBlocks(file, firstByte, info)
  const first = await blocks.next()
  if (first.done) throw undecodable('flac')
  return {
    sampleRate: info.sampleRate,
    channelCount: info.channelCount,
    sampleCount: info.sampleCount || undefined,
    format: 'flac',
    blocks: withFirst(first.value, blocks),
  }
}

async function* withFirst(first: AudioBlock, rest: AsyncIterable<AudioBlock>): AsyncGenerator<AudioBlock> {
  yield first
  yield* rest
}

async function readMetadata(file: FileBytes, start: number): Promise<{ info: FlacStreamInfo; firstByte: number }> {
  const head = await file.read(start, 8 + 34)
  if (head.length < 42 || (head[4] & 0x7f) !== 0) throw damagedFile("The FLAC file's header is missing or cut off.")
  const view = new DataView(head.buffer, head.byteOffset)
  const packed = view.getUint32(18)
  const info: FlacStreamInfo = {
    largestBlock: view.getUint16(10),
    sampleRate: packed >>> 12,
    channelCount: ((packed >> 9) & 7) + 1,
    bits: ((packed >> 4) & 31) + 1,
    sampleCount: (packed & 15) * 2 ** 32 + view.getUint32(22),
  }
  if (info.sampleRate === 0 || info.largestBlock < 16) throw damagedFile("The FLAC file's header is damaged.")
  if (info.bits > widestBits) {
    throw badInput(
      'unsupported_format',
      `The FLAC file has ${info.bits} bits per sample; expected at most ${widestBits}.`,
    )
  }
  let position = start + 4
  for (let isLast = false; !isLast;) {
    const block = await file.read(position, 4)
    if (block.length < 4) throw damagedFile('The FLAC file ends before its audio begins; it was cut off.')
    isLast = (block[0] & 0x80) !== 0
    position += 4 + ((block[1] << 16) | (block[2] << 8) | block[3])
  }
  return { info, firstByte: position }
}

async function* decodeBlocks(
  file: FileBytes,
  firstByte: number,
  info: FlacStreamInfo,
): AsyncGenerator<AudioBlock, void, undefined> {
  const pieces = file.pieces({ from: firstByte, pieceBytes: readBytes })
  let buffer: Uint8Array = new Uint8Array(0)
  let at = 0
  let isEnd = false
  let nextSample = 0
  /** Makes `wanted` bytes available from `at`, as far as the file has them. */
  const fill = async (wanted: number): Promise<void> => {
    const parts = [buffer.subarray(at)]
    let available = parts[0].length
    while (available < wanted && !isEnd) {
      const piece = await pieces.next()
      if (piece.done) {
        isEnd = true
      } else {
        parts.push(piece.value)
        available += piece.value.length
      }
    }
    buffer = Buffer.concat(parts)
    at = 0
  }

  for (;;) {
    if (buffer.length - at < longestHeader && !isEnd) await fill(longestHeader)
    if (at >= buffer.length) return
    const header = readFrameHeader(buffer, at, info)
    if (!header || !fits(header, info, nextSample)) {
      at = nextSync(buffer, at + 1)
      continue
    }
    const bound = largestFrame(header)
    if (buffer.length - at < bound && !isEnd) await fill(bound)
    const frame = decodeFrame(buffer, at, header)
    if (!frame) {
      at = nextSync(buffer, at + 1)
      continue
    }
    at += frame.bytes
    yield* silence(header.firstSample - nextSample, info.channelCount)
    nextSample = header.firstSample + header.blockSize
    yield { channels: frame.samples.map((samples) => scaled(samples, info.bits)) }
  }
}

/** Whether the header belongs to this stream and does not go back in time. */
function fits(header: FlacFrameHeader, info: FlacStreamInfo, nextSample: number): boolean {
  return (
    header.channelCount === info.channelCount &&
    header.bits === info.bits &&
    header.firstSample >= nextSample &&
    (info.sampleCount === 0 || header.firstSample + header.blockSize <= info.sampleCount)
  )
}

/** Upper bound of a frame's size in bytes: incompressible samples are stored verbatim. */
function largestFrame({ blockSize, channelCount, bits, headerBytes }: FlacFrameHeader): number {
  return headerBytes + Math.ceil((blockSize * channelCount * (bits + 1)) / 8) + channelCount * 8 + 2
}

function nextSync(bytes: Uint8Array, from: number): number {
  const found = bytes.indexOf(0xff, from)
  return found < 0 ? bytes.length : found
}

function* silence(sampleCount: number, channelCount: number): Generator<AudioBlock> {
  for (let left = sampleCount; left > 0; left -= silenceSamples) {
    yield { channels: Array.from({ length: channelCount }, () => new Float32Array(Math.min(left, silenceSamples))) }
  }
}

function scaled(samples: Int32Array, bits: number): Float32Array {
  const scale = 2 ** (1 - bits)
  const plane = new Float32Array(samples.length)
  for (let index = 0; index < plane.length; index++) plane[index] = samples[index] * scale
  return plane
}
