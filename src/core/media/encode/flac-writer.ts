import { latin1Bytes, setUint24, viewOf } from '../bytes.js'
import type { AudioEncoder, WrittenAudio } from './audio-encoder.js'
import type { AudioTags } from '../tags/audio-tags.js'
import { flacTagBlocks } from '../tags/vorbis-comment-writer.js'
import type { FileWriter } from './file-writer.js'
import { blockSamples } from './flac/block-memory.js'
import type { FlacFormat } from './flac/channel-ways.js'
import { FlacBlocks } from './flac/flac-blocks.js'
import { PcmEncoder } from './pcm-encoder.js'

/** The MD5 of all samples. Players take zeros for one that is not known. */
export interface FlacSum {
  update(bytes: Uint8Array): unknown
  digest(): Uint8Array
}

/** Flag in the first byte of a metadata block: audio follows. */
const lastBlockFlag = 0x80

/**
 * Writes a FLAC file as audio arrives, with the same integers as a WAV file of that width. `close` fills in what is
 * only known then: length, size of the frames and MD5, for players and `flac -t`.
 */
export class FlacWriter implements AudioEncoder {
  readonly #file: FileWriter
  readonly #format: FlacFormat
  readonly #hasTags: boolean
  readonly #blocks: FlacBlocks
  readonly #pcm: PcmEncoder
  readonly #md5: FlacSum
  /** Samples of the block that is not full yet. */
  #pending = 0
  #sampleCount = 0
  #frameBytes = { least: 0, most: 0 }

  private constructor(file: FileWriter, format: FlacFormat, md5: FlacSum, hasTags: boolean) {
    this.#file = file
    this.#md5 = md5
    this.#hasTags = hasTags
    this.#format = format
    this.#blocks = new FlacBlocks(format)
    this.#pcm = new PcmEncoder(format.bits === 16 ? '16' : '24')
  }

  static async open(file: FileWriter, format: FlacFormat, md5: FlacSum, tags: AudioTags = {}): Promise<FlacWriter> {
    const blocks = flacTagBlocks(tags)
    const writer = new FlacWriter(file, format, md5, blocks.length > 0)
    await writer.#file.append(writer.#streamInfo())
    const last = blocks.at(-1)
    if (last) last[0]! |= lastBlockFlag
    for (const block of blocks) await writer.#file.append(block)
    return writer
  }

  async write(planes: readonly Float32Array[]): Promise<void> {
    for (let start = 0; start < planes[0]!.length;) {
      const end = Math.min(start + blockSamples - this.#pending, planes[0]!.length)
      this.#take(planes.map((plane) => plane.subarray(start, end)))
      if (this.#pending === blockSamples) await this.#endBlock()
      start = end
    }
  }

  async close(): Promise<WrittenAudio> {
    try {
      if (this.#pending > 0) await this.#endBlock()
      await this.#file.flush()
      await this.#file.correct(this.#streamInfo(this.#md5.digest()), 0)
      return { sampleCount: this.#sampleCount, clippedSamples: this.#pcm.clippedSamples, bytes: this.#file.bytes }
    } finally {
      await this.#file.close()
    }
  }

  async abandon(): Promise<void> {
    await this.#file.close()
  }

  #take(planes: readonly Float32Array[]): void {
    const count = planes[0]!.length
    const { bytes, samples } = this.#pcm.integers(planes)
    this.#md5.update(bytes)
    this.#blocks.put(samples, this.#pending)
    this.#pending += count
    this.#sampleCount += count
  }

  async #endBlock(): Promise<void> {
    const frame = this.#blocks.encode(this.#pending)
    this.#pending = 0
    const { least, most } = this.#frameBytes
    this.#frameBytes = {
      least: least === 0 ? frame.length : Math.min(least, frame.length),
      most: Math.max(most, frame.length),
    }
    await this.#file.gather(frame)
  }

  /** The file's signature and its first metadata block (RFC 9639, 8.2). */
  #streamInfo(md5: Uint8Array = new Uint8Array(16)): Uint8Array {
    const { sampleRate, channels, bits } = this.#format
    const header = new Uint8Array(42)
    const view = viewOf(header)
    header.set(latin1Bytes('fLaC'))
    // A metadata block of type 0 and 34 bytes.
    header[4] = this.#hasTags ? 0 : lastBlockFlag
    header[7] = 34
    view.setUint16(8, blockSamples)
    view.setUint16(10, blockSamples)
    setUint24(view, 12, this.#frameBytes.least)
    setUint24(view, 15, this.#frameBytes.most)
    // 20 bits of rate, 3 of channels, 5 of sample width, 36 of length.
    setUint24(view, 18, sampleRate * 16 + (channels - 1) * 2 + ((bits - 1) >> 4))
    header[21] = (((bits - 1) & 0xf) << 4) | Math.floor(this.#sampleCount / 2 ** 32)
    view.setUint32(22, this.#sampleCount)
    header.set(md5, 26)
    return header
  }
}
