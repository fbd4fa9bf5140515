import { concat, latin1Bytes } from '../bytes.js'
import { riffTagChunks } from '../tags/riff-tag-chunks.js'
import { bytesPerSample } from './pcm-encoder.js'
import type { PcmContainer, PcmWriterOptions } from './pcm-writer.js'

export interface WavOptions extends PcmWriterOptions {
  /** Largest size for a RIFF header; larger files become RF64. Default: 4 GiB - 1, the format's limit. */
  maxRiffBytes?: number
}

/**
 * The container of WAV files. Its header has room for RF64 (EBU Tech 3306: a `JUNK` chunk of 28 bytes becomes `ds64`).
 */
export function wavContainer(options: WavOptions): PcmContainer {
  return {
    header: (bytes) =>
      bytes
        ? wavHeader(options, bytes.data, bytes.tags)
        : wavHeader({ ...options, maxRiffBytes: Infinity }, unknownBytes),
    tagChunks: riffTagChunks,
    isBigEndian: false,
  }
}

const largestRiffBytes = 0xffff_ffff
/** While the file grows, readers take this as an unknown length. */
const unknownBytes = 0xffff_ffff

function wavHeader(
  { sampleRate, channels, format, maxRiffBytes = largestRiffBytes }: WavOptions,
  dataBytes: number,
  tagBytes = 0,
): Uint8Array {
  const isFloat = format === '32f'
  const width = bytesPerSample[format]
  // A float file needs the 18-byte `fmt ` and a `fact` chunk, or strict readers warn.
  const formatBytes = isFloat ? 18 : 16
  const length = 12 + 36 + 8 + formatBytes + (isFloat ? 12 : 0) + 8
  const riffBytes = length - 8 + dataBytes + (dataBytes % 2) + tagBytes
  const isRf64 = riffBytes > maxRiffBytes
  const sampleCount = dataBytes / (width * channels)
  return concat([
    latin1Bytes(isRf64 ? 'RF64' : 'RIFF'),
    u32(isRf64 ? 0xffff_ffff : Math.min(riffBytes, unknownBytes)),
    latin1Bytes(isRf64 ? 'WAVEds64' : 'WAVEJUNK'),
    u32(28),
    ...(isRf64 ? [u64(riffBytes), u64(dataBytes), u64(sampleCount), u32(0)] : [new Uint8Array(28)]),
    latin1Bytes('fmt '),
    u32(formatBytes),
    u16(isFloat ? 3 : 1),
    u16(channels),
    u32(sampleRate),
    u32(sampleRate * channels * width),
    u16(channels * width),
    u16(width * 8),
    ...(isFloat ? [u16(0), latin1Bytes('fact'), u32(4), u32(Math.min(sampleCount, 0xffff_ffff))] : []),
    latin1Bytes('data'),
    u32(isRf64 ? 0xffff_ffff : dataBytes),
  ])
}

const u16 = (value: number) => Uint8Array.of(value, value >> 8)
const u32 = (value: number) => concat([u16(value), u16(value >>> 16)])
const u64 = (value: number) => concat([u32(value % 2 ** 32), u32(Math.floor(value / 2 ** 32))])
