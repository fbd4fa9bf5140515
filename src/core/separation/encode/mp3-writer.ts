import type { WasmMediaEncoder } from 'wasm-media-encoders'
import type { AudioEncoder, WrittenAudio } from './audio-encoder.js'
import { mp3FrameBytes, mp3InfoFrame } from '../decode/mp3-info.js'
import type { AudioTags } from '../tags/audio-tags.js'
import { id3Tag } from '../tags/id3-writer.js'
import { encoderPackage } from './encoder-package.js'
import { FileWriter } from './file-writer.js'

export interface Mp3Options {
  sampleRate: number
  channels: number
  tags?: AudioTags
}

const bitrate = 320

/**
 * Writes an MP3 file of 320 kbit/s as audio arrives. Its first frame states how many samples the encoder added before and
 * after the audio, so that players that support this restore the original start and length.
 */
export class Mp3Writer implements AudioEncoder {
  readonly #file: FileWriter
  readonly #encoder: WasmMediaEncoder<'audio/mpeg'>
  #sampleCount = 0
  /** Of the tag before the first frame. */
  #tagBytes = 0
  #header: Uint8Array | undefined
  /** Bytes until the next frame header, and the number of headers so far. */
  #toHeader = 0
  #frameCount = 0
  /** The start of a header that continues in the next piece. */
  #rest = new Uint8Array(0)

  private constructor(file: FileWriter, encoder: WasmMediaEncoder<'audio/mpeg'>) {
    this.#file = file
    this.#encoder = encoder
  }

  static async open(path: string, { sampleRate, channels, tags = {} }: Mp3Options): Promise<Mp3Writer> {
    const { createMp3Encoder } = await encoderPackage('wasm-media-encoders', 'MP3', () => import('wasm-media-encoders'))
    const encoder = await createMp3Encoder()
    encoder.configure({ sampleRate, channels: channels === 1 ? 1 : 2, bitrate })
    const writer = new Mp3Writer(await FileWriter.open(path), encoder)
    const tag = id3Tag(tags)
    writer.#tagBytes = tag.length
    await writer.#file.append(tag)
    return writer
  }

  async write(planes: readonly Float32Array[]): Promise<void> {
    this.#sampleCount += planes[0].length
    await this.#append(this.#encoder.encode(planes))
  }

  async close(): Promise<WrittenAudio> {
    try {
      await this.#append(this.#encoder.finalize())
      if (this.#header) {
        const bytes = this.#file.bytes - this.#tagBytes
        const facts = { frameCount: this.#frameCount, bytes, sampleCount: this.#sampleCount }
        await this.#file.correct(mp3InfoFrame(this.#header, facts), this.#tagBytes)
      }
      // MP3 stores no integers that could clip; clipping is up to the decoder.
      return { sampleCount: this.#sampleCount, clippedSamples: 0, bytes: this.#file.bytes }
    } finally {
      await this.#file.close()
    }
  }

  async abandon(): Promise<void> {
    await this.#file.close()
  }

  async #append(encoded: Uint8Array): Promise<void> {
    // A copy: the next call overwrites the encoder's memory.
    const bytes = encoded.slice()
    if (bytes.length === 0) return
    this.#countFrames(bytes)
    if (this.#file.bytes === this.#tagBytes && this.#header)
      await this.#file.append(new Uint8Array(mp3FrameBytes(this.#header, false)))
    await this.#file.append(bytes)
  }

  #countFrames(bytes: Uint8Array): void {
    const content = Buffer.concat([this.#rest, bytes])
    let position = this.#toHeader
    for (; position + 4 <= content.length; this.#frameCount++) {
      const header = content.subarray(position, position + 4)
      this.#header ??= Uint8Array.from(header)
      position += mp3FrameBytes(header)
    }
    this.#rest = new Uint8Array(content.subarray(Math.min(position, content.length)))
    this.#toHeader = Math.max(0, position - content.length)
  }
}
