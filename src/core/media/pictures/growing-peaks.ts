import { type FileHandle, open, rm } from 'node:fs/promises'
import type { AudioEncoder, PeaksState, WrittenAudio } from '../encode/audio-encoder.js'
import { peakByte } from './peaks-json.js'

export interface GrowingPeaksOptions {
  sampleRate: number
  /** What the source promises; undefined if it promises nothing. */
  sampleCount?: number
  /** Of the peaks that the second file has already; the encoder continues the first from there. */
  from?: PeaksState
}

const samplesPerBin = 512
const headerBytes = 24

/**
 * An encoder that keeps the peaks of what it writes in a second file, to be read while both grow; the end of the first
 * is the end of that one. It is in the binary format of audiowaveform, version 2, of 8 bits: two bytes for each 512
 * samples, the lowest and the highest over all channels. The `length` in its header is of the whole track, as far as
 * its source tells, else 0.
 */
export class GrowingPeaks implements AudioEncoder {
  readonly state: AudioEncoder['state']
  readonly #encoder: AudioEncoder
  readonly #file: FileHandle
  readonly #path: string
  #bytes: number
  #lowest = Infinity
  #highest = -Infinity
  /** Samples of the bin that is not complete yet. */
  #filled = 0

  private constructor(encoder: AudioEncoder, path: string, file: FileHandle, from: PeaksState | undefined) {
    this.#encoder = encoder
    this.#path = path
    this.#file = file
    this.#bytes = from?.bytes ?? headerBytes
    if (from && from.samples > 0) ({ samples: this.#filled, lowest: this.#lowest, highest: this.#highest } = from)
    this.state = encoder.state && (() => ({ ...encoder.state!(), peaks: this.#state() }))
  }

  static async open(encoder: AudioEncoder, path: string, options: GrowingPeaksOptions): Promise<GrowingPeaks> {
    const { sampleRate, sampleCount = 0, from } = options
    if (from) return new GrowingPeaks(encoder, path, await open(path, 'a'), from)
    const file = await open(path, 'w')
    const header = new DataView(new ArrayBuffer(headerBytes))
    const fields = [2, 1, sampleRate, samplesPerBin, Math.ceil(sampleCount / samplesPerBin), 1]
    fields.forEach((value, index) => header.setInt32(4 * index, value, true))
    await file.appendFile(new Uint8Array(header.buffer))
    return new GrowingPeaks(encoder, path, file, undefined)
  }

  async write(planes: readonly Float32Array[]): Promise<void> {
    // Behind the samples, so that what is drawn can be played.
    const bins = this.#binsOf(planes)
    await this.#encoder.write(planes)
    await this.#file.appendFile(bins)
    this.#bytes += bins.length
  }

  async close(): Promise<WrittenAudio> {
    try {
      return await this.#encoder.close()
    } finally {
      await this.#remove()
    }
  }

  async abandon(): Promise<void> {
    await this.#encoder.abandon()
    await this.#remove()
  }

  #state(): PeaksState {
    const samples = this.#filled
    const [lowest, highest] = samples > 0 ? [this.#lowest, this.#highest] : [0, 0]
    return { path: this.#path, bytes: this.#bytes, samples, lowest, highest }
  }

  async #remove(): Promise<void> {
    await this.#file.close()
    await rm(this.#path, { force: true })
  }

  /** As bytes, of which negative ones are two's complements. */
  #binsOf(planes: readonly Float32Array[]): Uint8Array {
    const length = planes[0]?.length ?? 0
    const bins: number[] = []
    for (let from = 0; from < length;) {
      const to = Math.min(length, from + samplesPerBin - this.#filled)
      for (const plane of planes)
        for (let i = from; i < to; i++) {
          const value = plane[i]!
          if (value < this.#lowest) this.#lowest = value
          if (value > this.#highest) this.#highest = value
        }
      this.#filled += to - from
      from = to
      if (this.#filled < samplesPerBin) break
      bins.push(peakByte(this.#lowest), peakByte(this.#highest))
      this.#filled = 0
      this.#lowest = Infinity
      this.#highest = -Infinity
    }
    return Uint8Array.from(bins)
  }
}
