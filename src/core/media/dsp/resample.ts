import type { AudioBlock, AudioStream } from './audio-stream.js'
import { createDotProduct, type DotProduct } from './kernels/dot-product.js'
import type { Kernel } from './kernels/kernel.js'
import { designLowPass } from './low-pass.js'

/**
 * Up to this many phases, every one has its own filter; above it, filters are interpolated between neighbouring phases.
 */
const mostExactPhases = 1024
/**
 * Linear interpolation between this many phases has an error below -135 dB. A filter that is narrower for its input
 * rate changes less from phase to phase, so it needs fewer.
 */
const interpolatedPhases = 4096
/** Input samples per channel that are processed at a time. */
const windowSamples = 8192

/**
 * Changes the sample rate with a 120 dB polyphase filter; the same rate passes unchanged. n samples become exactly
 * ceil(n * targetRate / sampleRate), and sample 0 stays at time 0. Block sizes make no difference to the result.
 */
export function resample(stream: AudioStream, targetRate: number): AudioStream {
  if (stream.sampleRate === targetRate) return stream
  const ratio = reduce(targetRate, stream.sampleRate)
  return {
    ...stream,
    sampleRate: targetRate,
    sampleCount: stream.sampleCount === undefined ? undefined : outputSamples(stream.sampleCount, ratio),
    blocks: resampleBlocks(stream, targetRate),
  }
}

/** Output sample n lies at input position n * down / up. */
interface Ratio {
  up: number
  down: number
}

async function* resampleBlocks(stream: AudioStream, targetRate: number): AsyncGenerator<AudioBlock> {
  const resampler = new Resampler(stream.sampleRate, targetRate, stream.channelCount)
  for await (const { channels } of stream.blocks) yield* resampler.push(channels)
  yield* resampler.end()
}

/** The same for blocks that are pushed as they arrive. Output lags by half a filter: 88 samples of the lower rate. */
export class Resampler {
  readonly #ratio: Ratio
  readonly #phases: number
  readonly #taps: number
  readonly #kernel: Kernel<DotProduct>
  /** Offset of each channel's window in the kernel's memory. */
  readonly #windows: number[]
  readonly #capacity: number
  /** Input position of the window's first sample. The filter reaches back into the silence before the audio. */
  #windowStart: number
  #filled: number
  #samplesOut = 0

  constructor(inputRate: number, outputRate: number, channelCount: number) {
    const ratio = reduce(outputRate, inputRate)
    const isExact = ratio.up <= mostExactPhases
    this.#ratio = ratio
    this.#phases = isExact ? ratio.up : Math.ceil(interpolatedPhases * Math.min(1, outputRate / inputRate))
    const { taps, rows } = designLowPass(inputRate, outputRate, this.#phases, isExact ? this.#phases : this.#phases + 1)
    this.#taps = taps
    this.#capacity = taps + windowSamples
    this.#windows = Array.from({ length: channelCount }, (_, channel) => rows.length + channel * this.#capacity)
    this.#kernel = createDotProduct(rows.length + channelCount * this.#capacity)
    this.#kernel.memory.set(rows)
    this.#filled = taps / 2 - 1
    this.#windowStart = -this.#filled
  }

  /** Yields all output that the input so far determines. */
  *push(planes: readonly Float32Array[]): Generator<AudioBlock, void, void> {
    const sampleCount = planes[0]!.length
    for (let from = 0; from < sampleCount;) {
      const taken = Math.min(sampleCount - from, this.#capacity - this.#filled)
      this.#append(planes.map((plane) => plane.subarray(from, from + taken)))
      from += taken
      yield* this.#drain()
    }
  }

  /** Yields the remaining output, whose filter reaches into the silence after the end. */
  *end(): Generator<AudioBlock, void, void> {
    for (const window of this.#windows)
      this.#kernel.memory.fill(0, window + this.#filled, window + this.#filled + this.#taps / 2)
    this.#filled += this.#taps / 2
    yield* this.#drain()
  }

  #append(planes: readonly Float32Array[]): void {
    planes.forEach((plane, channel) => this.#kernel.memory.set(plane, this.#windows[channel]! + this.#filled))
    this.#filled += planes[0]!.length
  }

  /** Yields the output so far and makes room for more input. */
  *#drain(): Generator<AudioBlock, void, void> {
    const lastPosition = this.#windowStart + this.#filled - 1 - this.#taps / 2
    const total = outputSamples(lastPosition + 1, this.#ratio)
    const count = total - this.#samplesOut
    if (count <= 0) return
    const channels = this.#windows.map((window) => this.#convolve(window, count))
    this.#samplesOut = total
    this.#forget()
    yield { channels }
  }

  #convolve(window: number, count: number): Float32Array {
    const { up, down } = this.#ratio
    const output = new Float32Array(count)
    const taps = this.#taps
    const { dotProduct } = this.#kernel
    const phaseScale = this.#phases / up
    const isExact = this.#phases === up
    let position = Math.floor((this.#samplesOut * down) / up)
    let remainder = this.#samplesOut * down - position * up
    const step = Math.floor(down / up)
    const stepRemainder = down - step * up
    const origin = window - this.#windowStart - taps / 2 + 1
    for (let i = 0; i < count; i++) {
      if (isExact) {
        output[i] = dotProduct(origin + position, remainder * taps, taps)
      } else {
        const phase = Math.floor(remainder * phaseScale)
        const below = dotProduct(origin + position, phase * taps, taps)
        const above = dotProduct(origin + position, (phase + 1) * taps, taps)
        output[i] = below + (above - below) * (remainder * phaseScale - phase)
      }
      position += step
      remainder += stepRemainder
      if (remainder >= up) {
        remainder -= up
        position++
      }
    }
    return output
  }

  #forget(): void {
    const { up, down } = this.#ratio
    const firstNeeded = Math.floor((this.#samplesOut * down) / up) - this.#taps / 2 + 1
    const dropped = Math.min(this.#filled, firstNeeded - this.#windowStart)
    for (const window of this.#windows) this.#kernel.memory.copyWithin(window, window + dropped, window + this.#filled)
    this.#windowStart += dropped
    this.#filled -= dropped
  }
}

function outputSamples(inputSamples: number, { up, down }: Ratio): number {
  return Math.ceil((inputSamples * up) / down)
}

function reduce(up: number, down: number): Ratio {
  let [larger, divisor] = [up, down]
  while (divisor > 0) [larger, divisor] = [divisor, larger % divisor]
  return { up: up / larger, down: down / larger }
}
