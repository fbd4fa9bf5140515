import { SampleWindow } from '../../../media/dsp/sample-window.js'
import type { AudioBlock } from '../../../media/dsp/audio-stream.js'

/** A stretch of the stream, separated: `vocals + accompaniments` is what came in. */
export interface LiveStems {
  /** Samples of the stream before it. */
  start: number
  /** One plane for each channel of the stream. */
  stems: { vocals: Float32Array[]; accompaniments: Float32Array[] }
  /** The estimate came too late: all of the input is in the accompaniments. */
  isLate: boolean
}

/** Joins a stream with the estimates of its vocals, or without where they are late, and fades between the two. */
export class LiveMix {
  readonly #input: SampleWindow
  readonly #vocals: SampleWindow
  readonly #fade: number
  readonly #channelCount: number
  /** Gain of the estimates: 0 while the input passes unchanged. */
  #gain = 1

  constructor(channelCount: number, fadeSamples: number) {
    this.#channelCount = channelCount
    this.#fade = fadeSamples
    this.#input = new SampleWindow(channelCount, 8 * fadeSamples)
    this.#vocals = new SampleWindow(channelCount, 8 * fadeSamples)
  }

  /** Samples that came in. */
  get end(): number {
    return this.#input.end
  }

  /** Samples that were returned. */
  get done(): number {
    return this.#input.start
  }

  append(planes: readonly Float32Array[]): void {
    this.#input.append(planes)
  }

  /** Takes the next estimates; those of samples that were already returned are dropped. */
  add(blocks: readonly AudioBlock[]): void {
    for (const { channels } of blocks) this.#vocals.append(channels)
    this.#vocals.dropBefore(this.done)
  }

  /** All that is separated, except what is kept to fade out if the next estimate is late. */
  separated(): LiveStems | undefined {
    return this.#upTo(Math.min(this.#vocals.end - this.#fade, this.end), false)
  }

  /** What is left, with all estimates there. */
  rest(): LiveStems | undefined {
    return this.#upTo(this.end, false)
  }

  /** The input up to `to`, without estimates of it. */
  passed(to: number): LiveStems | undefined {
    return this.#upTo(to, true)
  }

  #upTo(to: number, isLate: boolean): LiveStems | undefined {
    const start = this.done
    if (to <= start) return undefined
    const input = this.#input.views(start, to)
    const known = Math.max(start, Math.min(to, this.#vocals.end))
    const vocals = Array.from({ length: this.#channelCount }, () => new Float32Array(to - start))
    if (known > start) {
      const estimate = this.#vocals.views(start, known)
      for (const [channel, plane] of vocals.entries()) plane.set(estimate[channel]!)
    }
    this.#fadeTo(isLate ? 0 : 1, vocals)
    const accompaniments = input.map((plane, channel) => plane.map((value, i) => value - vocals[channel]![i]!))
    this.#input.dropBefore(to)
    this.#vocals.dropBefore(to)
    return { start, stems: { vocals, accompaniments }, isLate }
  }

  #fadeTo(target: 0 | 1, planes: readonly Float32Array[]): void {
    const length = planes[0]!.length
    for (let i = 0; i < length && (this.#gain !== 1 || target !== 1); i++) {
      if (this.#gain < target) this.#gain = Math.min(target, this.#gain + 1 / this.#fade)
      if (this.#gain > target) this.#gain = Math.max(target, this.#gain - 1 / this.#fade)
      for (const plane of planes) plane[i]! *= this.#gain
    }
  }
}
