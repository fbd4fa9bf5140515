import { viewOf } from '../bytes.js'
import { riffTagChunks } from '../tags/riff-tag-chunks.js'
import { bytesPerSample } from './pcm-encoder.js'
import type { PcmContainer, PcmWriterOptions } from './pcm-writer.js'

export interface WavOptions extends PcmWriterOptions {
  /** Largest size for a RIFF header; larger files become RF64. Default: 4 GiB - 1, the format's limit. */
  maxRiffBytes?: number
}

/**
 * A WAV file. Its header is written with room for RF64 (EBU Tech 3306: a `JUNK` chunk of 28 bytes becomes `ds64`).
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
/** Readers of the growing file take its end as unknown. */
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
  const header = new Uint8Array(length)
  const view = viewOf(header)
  let at = 0
  const tag = (text: string) => {
    for (const character of text) header[at++] = character.charCodeAt(0)
  }
  const u16 = (value: number) => {
    view.setUint16(at, value, true)
    at += 2
  }
  const u32 = (value: number) => {
    view.setUint32(at, value, true)
    at += 4
  }
  const u64 = (value: number) => {
    view.setBigUint64(at, BigInt(value), true)
    at += 8
  }

  tag(isRf64 ? 'RF64' : 'RIFF')
  u32(isRf64 ? 0xffff_ffff : Math.min(riffBytes, unknownBytes))
  tag('WAVE')
  tag(isRf64 ? 'ds64' : 'JUNK')
  u32(28)
  if (isRf64) {
    u64(riffBytes)
    u64(dataBytes)
    u64(sampleCount)
    u32(0)
  } else {
    at += 28
  }
  tag('fmt ')
  u32(formatBytes)
  u16(isFloat ? 3 : 1)
  u16(channels)
  u32(sampleRate)
  u32(sampleRate * channels * width)
  u16(channels * width)
  u16(width * 8)
  if (isFloat) {
    u16(0)
    tag('fact')
    u32(4)
    u32(Math.min(sampleCount, 0xffff_ffff))
  }
  tag('data')
  u32(isRf64 ? 0xffff_ffff : dataBytes)
  return header
}
