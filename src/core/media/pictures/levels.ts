import type { AudioBlock, AudioStream } from '../dsp/audio-stream.js'

/**
 * Loudness of a track over time: one entry per `samplesPerBin` samples, over all channels; the last one may cover
 * fewer.
 */
export interface Levels {
  sampleRate: number
  channelCount: number
  sampleCount: number
  /** A power of two. */
  samplesPerBin: number
  lowest: Float32Array
  highest: Float32Array
  /** Root mean square. */
  effective: Float32Array
}

const firstSamplesPerBin = 256

/**
 * Reads a track and keeps at most `maxBins` (an even number) entries: when they are full, each pair is merged. So
 * memory does not grow with the track, and its length need not be known.
 */
export async function collectLevels(
  stream: AudioStream,
  { maxBins = 8192, signal }: { maxBins?: number; signal?: AbortSignal } = {},
): Promise<Levels> {
  const bins = new Bins(maxBins)
  for await (const block of stream.blocks) {
    signal?.throwIfAborted()
    bins.add(block)
  }
  return { sampleRate: stream.sampleRate, channelCount: stream.channelCount, ...bins.finish(stream.channelCount) }
}

class Bins {
  readonly #lowest: Float32Array
  readonly #highest: Float32Array
  readonly #squares: Float64Array
  #samplesPerBin = firstSamplesPerBin
  #sampleCount = 0

  constructor(maxBins: number) {
    this.#lowest = new Float32Array(maxBins)
    this.#highest = new Float32Array(maxBins)
    this.#squares = new Float64Array(maxBins)
  }

  add({ channels }: AudioBlock): void {
    const { length } = channels[0]!
    for (let from = 0; from < length;) {
      if (this.#sampleCount === this.#lowest.length * this.#samplesPerBin) this.#halve()
      const within = this.#sampleCount % this.#samplesPerBin
      const to = Math.min(length, from + this.#samplesPerBin - within)
      this.#addTo(Math.floor(this.#sampleCount / this.#samplesPerBin), channels, from, to)
      this.#sampleCount += to - from
      from = to
    }
  }

  #addTo(bin: number, channels: readonly Float32Array[], from: number, to: number): void {
    const isNew = this.#sampleCount % this.#samplesPerBin === 0
    let lowest = isNew ? Infinity : this.#lowest[bin]!
    let highest = isNew ? -Infinity : this.#highest[bin]!
    let squares = isNew ? 0 : this.#squares[bin]!
    for (const plane of channels) {
      for (let i = from; i < to; i++) {
        const value = plane[i]!
        if (value < lowest) lowest = value
        if (value > highest) highest = value
        squares += value * value
      }
    }
    this.#lowest[bin] = lowest
    this.#highest[bin] = highest
    this.#squares[bin] = squares
  }

  #halve(): void {
    for (let bin = 0; bin < this.#lowest.length / 2; bin++) {
      const [one, other] = [2 * bin, 2 * bin + 1]
      this.#lowest[bin] = Math.min(this.#lowest[one]!, this.#lowest[other]!)
      this.#highest[bin] = Math.max(this.#highest[one]!, this.#highest[other]!)
      this.#squares[bin] = this.#squares[one]! + this.#squares[other]!
    }
    this.#samplesPerBin *= 2
  }

  finish(channelCount: number): Omit<Levels, 'sampleRate' | 'channelCount'> {
    const samplesPerBin = this.#samplesPerBin
    const used = Math.ceil(this.#sampleCount / samplesPerBin)
    const effective = new Float32Array(used)
    for (let bin = 0; bin < used; bin++) {
      const sampleCount = Math.min(samplesPerBin, this.#sampleCount - bin * samplesPerBin)
      effective[bin] = Math.sqrt(this.#squares[bin]! / (sampleCount * channelCount))
    }
    return {
      sampleCount: this.#sampleCount,
      samplesPerBin,
      lowest: this.#lowest.slice(0, used),
      highest: this.#highest.slice(0, used),
      effective,
    }
  }
}
