import type { AudioEncoder, EncoderState, WrittenAudio } from './audio-encoder.js'
import type { AudioTags } from '../tags/audio-tags.js'
import { riffTagChunks } from '../tags/riff-tag-chunks.js'
import { FileWriter } from './file-writer.js'
import { bytesPerSample, PcmEncoder, type PcmFormat } from './pcm-encoder.js'

export interface WavWriterOptions {
  sampleRate: number
  channels: number
  format: PcmFormat
  /** Written after the samples. */
  tags?: AudioTags
  /** Largest size for a RIFF header; larger files become RF64. Default: 4 GiB - 1, the format's limit. */
  maxRiffBytes?: number
  /** Continues the existing file, as a writer with such a `state` left it. Default: a new file. */
  from?: EncoderState
}

/**
 * Writes a WAV file as audio arrives. The header is written with room for RF64 (EBU Tech 3306: a `JUNK` chunk of 28
 * bytes becomes `ds64`) and completed by `close`. Integers are rounded from `sample * 2^(bits-1)` and clipped, never
 * wrapped or dithered, so samples from a file of the same width keep their bytes.
 */
export class WavWriter implements AudioEncoder {
  readonly #file: FileWriter
  readonly #options: WavWriterOptions
  #dataBytes = 0
  readonly #pcm: PcmEncoder

  private constructor(file: FileWriter, options: WavWriterOptions) {
    this.#file = file
    this.#options = options
    this.#pcm = new PcmEncoder(options.format)
  }

  /** Creates or replaces the file, unless it continues one. */
  static async open(path: string, options: WavWriterOptions): Promise<WavWriter> {
    const { from } = options
    const header = wavHeader({ ...options, maxRiffBytes: Infinity }, unknownBytes)
    if (from) {
      const writer = new WavWriter(await FileWriter.reopen(path, from.bytes), options)
      writer.#dataBytes = from.bytes - header.length
      writer.#pcm.clippedSamples = from.clippedSamples
      return writer
    }
    const writer = new WavWriter(await FileWriter.open(path), options)
    await writer.#file.append(header)
    return writer
  }

  state(): EncoderState {
    return { bytes: this.#file.bytes, clippedSamples: this.#pcm.clippedSamples }
  }

  /** Appends one plane per channel, all of the same length, nominal range -1..1. Calls must not overlap. */
  async write(planes: readonly Float32Array[]): Promise<void> {
    const bytes = this.#pcm.encode(planes)
    await this.#file.append(bytes)
    this.#dataBytes += bytes.length
  }

  /** Completes the header and closes the file. */
  async close(): Promise<WrittenAudio> {
    try {
      if (this.#dataBytes % 2) await this.#file.append(new Uint8Array(1))
      const tagChunks = riffTagChunks(this.#options.tags ?? {})
      await this.#file.append(tagChunks)
      await this.#file.correct(wavHeader(this.#options, this.#dataBytes, tagChunks.length), 0)
      const sampleCount = this.#dataBytes / (bytesPerSample[this.#options.format] * this.#options.channels)
      return { sampleCount, clippedSamples: this.#pcm.clippedSamples, bytes: this.#file.bytes }
    } finally {
      await this.#file.close()
    }
  }

  /** Closes the file without completing it; the caller removes it. */
  async abandon(): Promise<void> {
    await this.#file.close()
  }
}

const largestRiffBytes = 0xffff_ffff
/** Readers of the growing file take its end as unknown. */
const unknownBytes = 0xffff_ffff

function wavHeader(
  { sampleRate, channels, format, maxRiffBytes = largestRiffBytes }: WavWriterOptions,
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
  const header = Buffer.alloc(length)
  let at = 0
  const tag = (text: string) => (at += header.write(text, at, 'latin1'))
  const u16 = (value: number) => (at = header.writeUInt16LE(value, at))
  const u32 = (value: number) => (at = header.writeUInt32LE(value, at))
  const u64 = (value: number) => (at = header.writeBigUInt64LE(BigInt(value), at))

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
