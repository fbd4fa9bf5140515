import { createHash } from 'node:crypto'
import type { AudioEncoder } from './audio-encoder.js'
import { encoderPackage } from './encoder-package.js'
import { FileWriter } from './file-writer.js'

export interface FlacOptions {
  sampleRate: number
  channels: number
  bits: 16 | 24
}

/** Samples per channel that go through the encoder at once: it copies them into a heap of fixed size. */
const pieceSamples = 16_384

/** Position of the sample count and of the audio's MD5 in the file (RFC 9639, 8.2). */
const streamInfoTail = { position: 21, bytes: 21 }

type Encoder = Awaited<ReturnType<(typeof import('@audio/encode-flac'))['default']>>

/**
 * Writes a FLAC file as audio arrives, with the same integers as a WAV file of that width: rounded from `sample * 2^(bits-1)` and
 * clipped. `close` fills in length and MD5, for players and `flac -t`.
 */
export class FlacWriter implements AudioEncoder {
  readonly #file: FileWriter
  readonly #encoder: Encoder
  readonly #options: FlacOptions
  readonly #md5 = createHash('md5')
  #sampleCount = 0
  #clippedSamples = 0

  private constructor(file: FileWriter, encoder: Encoder, options: FlacOptions) {
    this.#file = file
    this.#encoder = encoder
    this.#options = options
  }

  static async open(path: string, options: FlacOptions): Promise<FlacWriter> {
    const { default: createEncoder } = await encoderPackage(
      '@audio/encode-flac',
      'FLAC',
      () => import('@audio/encode-flac'),
    )
    const { sampleRate, channels, bits } = options
    const encoder = await createEncoder({ sampleRate, channels, bitDepth: bits })
    return new FlacWriter(await FileWriter.open(path), encoder, options)
  }

  async write(planes: readonly Float32Array[]): Promise<void> {
    for (let start = 0; start < planes[0].length; start += pieceSamples) {
      await this.#writePiece(planes.map((plane) => plane.subarray(start, start + pieceSamples)))
    }
  }

  async close(): Promise<{ sampleCount: number; clippedSamples: number; bytes: number }> {
    try {
      await this.#file.append(this.#encoder.flush())
      const tail = new Uint8Array(streamInfoTail.bytes)
      // The length has 36 bits. Its upper four share a byte with the lower four of (bits per sample - 1).
      tail[0] = (((this.#options.bits - 1) & 0xf) << 4) | Math.floor(this.#sampleCount / 2 ** 32)
      new DataView(tail.buffer).setUint32(1, this.#sampleCount % 2 ** 32)
      tail.set(this.#md5.digest(), 5)
      await this.#file.correct(tail, streamInfoTail.position)
      return { sampleCount: this.#sampleCount, clippedSamples: this.#clippedSamples, bytes: this.#file.bytes }
    } finally {
      await this.#file.close()
    }
  }

  async abandon(): Promise<void> {
    this.#encoder.free()
    await this.#file.close()
  }

  async #writePiece(planes: readonly Float32Array[]): Promise<void> {
    const { bits } = this.#options
    const largest = 2 ** (bits - 1) - 1
    const bytes = bits / 8
    const pcm = Buffer.alloc(planes[0].length * planes.length * bytes)
    const scaled = planes.map((plane, channel) => {
      // The encoder multiplies by the largest integer; with doubles, that restores exactly the integer chosen here.
      const values = new Float64Array(plane.length)
      for (let i = 0; i < plane.length; i++) {
        const value = this.#integer(plane[i], largest)
        pcm.writeIntLE(value, (i * planes.length + channel) * bytes, bytes)
        values[i] = value / largest
      }
      return values
    })
    this.#md5.update(pcm)
    this.#sampleCount += planes[0].length
    await this.#file.append(this.#encoder.encode(scaled as unknown as Float32Array[]))
  }

  #integer(sample: number, largest: number): number {
    const value = Math.round(sample * (largest + 1))
    if (value <= largest && value >= -largest - 1) return value
    this.#clippedSamples++
    return value > 0 ? largest : -largest - 1
  }
}
