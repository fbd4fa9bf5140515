import { badInput } from '../../engine/errors.js'
import type { AudioTags } from '../tags/audio-tags.js'
import type { AudioEncoder, EncoderState, WrittenAudio } from './audio-encoder.js'
import type { FileWriter } from './file-writer.js'
import { bytesPerSample, PcmEncoder, type PcmFormat } from './pcm-encoder.js'

export interface PcmWriterOptions {
  sampleRate: number
  channels: number
  format: PcmFormat
  /** Written after the samples. */
  tags?: AudioTags
  /** Continues the existing file, as a writer with such a `state` left it. Default: a new file. */
  from?: EncoderState
}

/** How long the parts of a file are. */
export interface PcmBytes {
  data: number
  tags: number
}

/** What surrounds the samples in a file. */
export interface PcmContainer {
  /**
   * All before the samples, always of the same length.
   *
   * @param bytes absent while the file grows
   */
  header(bytes?: PcmBytes): Uint8Array
  /** What the tags become behind the samples, of even length. */
  tagChunks(tags: AudioTags): Uint8Array
  isBigEndian: boolean
  /** How many bytes of samples its header can state, and what to say of more. Absent: any number. */
  limit?: { bytes: number; message: string }
}

/**
 * Writes a file of uncompressed samples as audio arrives; `close` completes the header. Integers are rounded from
 * `sample * 2^(bits-1)` and clipped, never wrapped or dithered, so samples from a file of the same width keep their
 * bytes.
 */
export class PcmWriter implements AudioEncoder {
  readonly #file: FileWriter
  readonly #container: PcmContainer
  readonly #options: PcmWriterOptions
  readonly #pcm: PcmEncoder
  #dataBytes = 0

  private constructor(file: FileWriter, container: PcmContainer, options: PcmWriterOptions) {
    this.#file = file
    this.#container = container
    this.#options = options
    this.#pcm = new PcmEncoder(options.format, container.isBigEndian)
  }

  /** @param file a new one, or the one that `options.from` continues */
  static async open(file: FileWriter, container: PcmContainer, options: PcmWriterOptions): Promise<PcmWriter> {
    const { from } = options
    const header = container.header()
    const writer = new PcmWriter(file, container, options)
    if (from) {
      writer.#dataBytes = from.bytes - header.length
      writer.#pcm.clippedSamples = from.clippedSamples
    } else {
      await file.append(header)
    }
    return writer
  }

  state(): EncoderState {
    return { bytes: this.#file.bytes, clippedSamples: this.#pcm.clippedSamples }
  }

  /**
   * Appends one plane per channel, all of the same length, nominal range -1..1. Calls must not overlap.
   *
   * @throws StemworkError `BAD_INPUT` `too_long` when the header could not state the length
   */
  async write(planes: readonly Float32Array[]): Promise<void> {
    const bytes = this.#pcm.encode(planes)
    const { limit } = this.#container
    if (limit && this.#dataBytes + bytes.length > limit.bytes) throw badInput('too_long', limit.message)
    await this.#file.append(bytes)
    this.#dataBytes += bytes.length
  }

  /** Completes the header and closes the file. */
  async close(): Promise<WrittenAudio> {
    try {
      if (this.#dataBytes % 2) await this.#file.append(new Uint8Array(1))
      const tags = this.#container.tagChunks(this.#options.tags ?? {})
      await this.#file.append(tags)
      await this.#file.correct(this.#container.header({ data: this.#dataBytes, tags: tags.length }), 0)
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
