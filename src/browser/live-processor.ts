import type { FromProcessor, ProcessorOptions, ToProcessor } from './live-node.js'

// The script of the audio thread. It delays its input, subtracts the vocals that are ready in time, and never blocks.

declare const registerProcessor: (name: string, processor: unknown) => void
declare const AudioWorkletProcessor: new () => { readonly port: MessagePort }

/** Samples posted to the page at a time: 23 ms. */
const blockSamples = 1024
/** Factor per sample that fades out the last vocals where the next ones are not ready: by 40 dB in 10 ms. */
const decay = 0.99

/** One of the two channels: ring buffers of its input and its vocals, by position modulo the length. */
class Channel {
  block = new Float32Array(blockSamples)
  readonly #input: Float32Array
  readonly #vocals: Float32Array
  #last = 0

  constructor(length: number) {
    this.#input = new Float32Array(length)
    this.#vocals = new Float32Array(length)
  }

  hear(sample: number, at: number, filled: number): void {
    this.#input[at] = this.block[filled] = sample
  }

  learn(vocals: number, at: number): void {
    this.#vocals[at] = vocals
  }

  play(at: number, isKnown: boolean): { vocals: number; rest: number } {
    const vocals = isKnown ? (this.#vocals[at] ?? 0) : this.#last * decay
    this.#last = vocals
    return { vocals, rest: (this.#input[at] ?? 0) - vocals }
  }

  takeBlock(): Float32Array<ArrayBuffer> {
    const { block } = this
    this.block = new Float32Array(blockSamples)
    return block
  }
}

class LiveProcessor extends AudioWorkletProcessor {
  readonly #delay: number
  readonly #length: number
  readonly #channels: Channel[]
  /** 1 where the vocals are known. */
  readonly #known: Uint8Array
  #filled = 0
  #position = 0
  #lateSamples = 0
  #toldLateSamples = 0
  #isOpen = true

  constructor({ processorOptions: { delaySamples } }: { processorOptions: ProcessorOptions }) {
    super()
    this.#delay = delaySamples
    this.#length = delaySamples + 2 * blockSamples
    this.#channels = [new Channel(this.#length), new Channel(this.#length)]
    this.#known = new Uint8Array(this.#length)
    this.port.onmessage = ({ data }: MessageEvent<ToProcessor>) => {
      if (data.kind === 'close') this.#isOpen = false
      else this.#take(data)
    }
  }

  process([input = []]: Float32Array[][], [vocals = [], accompaniments = []]: Float32Array[][]): boolean {
    const count = vocals[0]?.length ?? 0
    for (let i = 0; i < count; i++) {
      const at = this.#position % this.#length
      for (const [index, channel] of this.#channels.entries())
        // The input may have no channel, or a single one.
        channel.hear((input[index] ?? input[0])?.[i] ?? 0, at, this.#filled)
      this.#known[at] = 0
      if (++this.#filled === blockSamples) this.#send()
      this.#play(this.#position - this.#delay, i, vocals, accompaniments)
      this.#position++
    }
    return this.#isOpen
  }

  #play(position: number, i: number, vocals: Float32Array[], accompaniments: Float32Array[]): void {
    if (position < 0) return
    const at = position % this.#length
    const isKnown = this.#known[at] === 1
    if (!isKnown) this.#lateSamples++
    for (const [index, channel] of this.#channels.entries()) {
      const played = channel.play(at, isKnown)
      vocals[index]?.fill(played.vocals, i, i + 1)
      accompaniments[index]?.fill(played.rest, i, i + 1)
    }
  }

  #send(): void {
    const blocks = this.#channels.map((channel) => channel.takeBlock())
    this.port.postMessage(
      { kind: 'heard', planes: blocks } satisfies FromProcessor,
      blocks.map(({ buffer }) => buffer),
    )
    this.#filled = 0
    if (this.#lateSamples === this.#toldLateSamples) return
    this.#toldLateSamples = this.#lateSamples
    this.port.postMessage({ kind: 'late', samples: this.#lateSamples } satisfies FromProcessor)
  }

  /** Ignores vocals whose samples were already played. */
  #take({ start, vocals }: ToProcessor & { kind: 'vocals' }): void {
    const from = Math.max(start, this.#position - this.#delay)
    const to = Math.min(start + (vocals[0]?.length ?? 0), this.#position)
    for (let position = from; position < to; position++) {
      const at = position % this.#length
      for (const [index, channel] of this.#channels.entries()) channel.learn(vocals[index]?.[position - start] ?? 0, at)
      this.#known[at] = 1
    }
  }
}

registerProcessor('stemwork-live', LiveProcessor)
