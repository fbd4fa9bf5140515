import type { AudioBlock, AudioStream } from '../dsp/audio-stream.js'

/** How loud a track is over time: one entry for every `framesPerBin` frames, over all channels; the last one may cover fewer. */
export interface Levels {
  sampleRate: number
  channelCount: number
  frames: number
  /** A power of two. */
  framesPerBin: number
  lowest: Float32Array
  highest: Float32Array
  /** Root mean square. */
  effective: Float32Array
}

const firstFramesPerBin = 256

/**
 * Reads a track and keeps at most `maxBins` (an even number) entries: whenever they are used up, each two become one. So memory does not grow with the
 * track, and its length need not be known.
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
  #framesPerBin = firstFramesPerBin
  #frames = 0

  constructor(maxBins: number) {
    this.#lowest = new Float32Array(maxBins)
    this.#highest = new Float32Array(maxBins)
    this.#squares = new Float64Array(maxBins)
  }

  add({ channels }: AudioBlock): void {
    const { length } = channels[0]
    for (let from = 0; from < length;) {
      if (this.#frames === this.#lowest.length * this.#framesPerBin) this.#halve()
      const within = this.#frames % this.#framesPerBin
      const to = Math.min(length, from + this.#framesPerBin - within)
      this.#addTo(Math.floor(this.#frames / this.#framesPerBin), channels, from, to)
      this.#frames += to - from
      from = to
    }
  }

  #addTo(bin: number, channels: readonly Float32Array[], from: number, to: number): void {
    const isNew = this.#frames % this.#framesPerBin === 0
    let lowest = isNew ? Infinity : this.#lowest[bin]
    let highest = isNew ? -Infinity : this.#highest[bin]
    let squares = isNew ? 0 : this.#squares[bin]
    for (const plane of channels) {
      for (let frame = from; frame < to; frame++) {
        const value = plane[frame]
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
      this.#lowest[bin] = Math.min(this.#lowest[one], this.#lowest[other])
      this.#highest[bin] = Math.max(this.#highest[one], this.#highest[other])
      this.#squares[bin] = this.#squares[one] + this.#squares[other]
    }
    this.#framesPerBin *= 2
  }

  finish(channelCount: number): Omit<Levels, 'sampleRate' | 'channelCount'> {
    const framesPerBin = this.#framesPerBin
    const used = Math.ceil(this.#frames / framesPerBin)
    const effective = new Float32Array(used)
    for (let bin = 0; bin < used; bin++) {
      const frames = Math.min(framesPerBin, this.#frames - bin * framesPerBin)
      effective[bin] = Math.sqrt(this.#squares[bin] / (frames * channelCount))
    }
    return {
      frames: this.#frames,
      framesPerBin,
      lowest: this.#lowest.slice(0, used),
      highest: this.#highest.slice(0, used),
      effective,
    }
  }
}
