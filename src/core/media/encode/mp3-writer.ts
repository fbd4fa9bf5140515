import { StemworkError } from '../../engine/errors.js'
import type { AudioEncoder, WrittenAudio } from './audio-encoder.js'
import { mp3InfoBytes, mp3InfoFrame } from '../decode/mp3-info.js'
import type { AudioTags } from '../tags/audio-tags.js'
import { id3Tag } from '../tags/id3-writer.js'
import type { FileWriter } from './file-writer.js'
import { mp3SampleRates } from './mp3/band-limits.js'
import { encoderDelay, frameSamples, Mp3Frames } from './mp3/mp3-frames.js'

export interface Mp3Options {
  sampleRate: number
  channels: number
  tags?: AudioTags
}

/** Samples that every decoder adds. */
const decoderDelay = 529

/**
 * Writes an MP3 file of 320 kbit/s as audio arrives. Its first frame states how many samples the encoder added before
 * and after the audio, so that players that support this restore the original start and length.
 */
export class Mp3Writer implements AudioEncoder {
  readonly #file: FileWriter
  readonly #frames: Mp3Frames
  /** Samples of the frame that is not full yet. */
  readonly #planes: Float32Array[]
  #pending = 0
  #sampleCount = 0
  #frameCount = 0
  /** Of the tag before the first frame. */
  #tagBytes = 0
  #header = new Uint8Array(4)

  private constructor(file: FileWriter, { sampleRate, channels }: Mp3Options) {
    this.#file = file
    this.#frames = new Mp3Frames({ sampleRate, channels: channels === 1 ? 1 : 2 })
    this.#planes = Array.from({ length: channels }, () => new Float32Array(frameSamples))
  }

  /** @throws StemworkError `INVALID_OPTIONS` at a sample rate that the format does not have */
  static async open(createFile: () => Promise<FileWriter>, options: Mp3Options): Promise<Mp3Writer> {
    if (!mp3SampleRates.includes(options.sampleRate) || options.channels > 2)
      throw new StemworkError(
        'INVALID_OPTIONS',
        `MP3 files hold one or two channels at ${mp3SampleRates.join(', ')} Hz, not ${options.channels} at ` +
          `${options.sampleRate} Hz. Choose format 'flac'.`,
      )
    const writer = new Mp3Writer(await createFile(), options)
    const tag = id3Tag(options.tags ?? {})
    writer.#tagBytes = tag.length
    await writer.#file.append(tag)
    return writer
  }

  async write(planes: readonly Float32Array[]): Promise<void> {
    const count = planes[0]!.length
    for (let start = 0; start < count;) {
      const end = Math.min(start + frameSamples - this.#pending, count)
      for (const [channel, plane] of planes.entries())
        this.#planes[channel]!.set(plane.subarray(start, end), this.#pending)
      this.#pending += end - start
      if (this.#pending === frameSamples) await this.#endFrame()
      start = end
    }
    this.#sampleCount += count
  }

  async close(): Promise<WrittenAudio> {
    try {
      // Silence, until the decoder has put out the last sample.
      while (
        this.#sampleCount > 0 &&
        this.#frameCount * frameSamples < this.#sampleCount + encoderDelay + decoderDelay
      ) {
        for (const plane of this.#planes) plane.fill(0, this.#pending)
        await this.#endFrame()
      }
      await this.#file.flush()
      if (this.#frameCount > 0) {
        const facts = { frameCount: this.#frameCount, bytes: this.#file.bytes - this.#tagBytes }
        const info = mp3InfoFrame(this.#header, { ...facts, encoderDelay, sampleCount: this.#sampleCount })
        await this.#file.correct(info, this.#tagBytes)
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

  async #endFrame(): Promise<void> {
    const frame = this.#frames.encode(this.#planes)
    this.#pending = 0
    if (this.#frameCount++ === 0) {
      this.#header.set(frame.subarray(0, 4))
      // Room for the frame with the length.
      await this.#file.append(new Uint8Array(mp3InfoBytes(this.#header)))
    }
    await this.#file.gather(frame)
  }
}
