import { TempoAndPitch } from '../../core/media/dsp/stretch/tempo-and-pitch.js'
import { Limiter } from './limiter.js'
import type { FromStretcher, StretcherOptions, ToStretcher } from './stretcher.js'

// The script of the audio thread. It plays pieces at another tempo and pitch, all tracks in step.

declare const registerProcessor: (name: string, processor: unknown) => void
declare const AudioWorkletProcessor: new () => { readonly port: MessagePort }
declare const currentTime: number
declare const sampleRate: number

/** Few, so that the thread is never busy for long. */
const blockSamples = 1024
/** Reports its position to the page about ten times a second. */
const hopsPerMark = 8

interface Piece {
  planes: Float32Array[]
  /** Samples of the input before the piece. */
  start: number
  /** Its position in the track, in seconds. */
  position: number
}

// Audio threads have no `atob`, and the kernels are in base64.
const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
globalThis.atob ??= (text) => {
  let [bytes, bits, count] = ['', 0, 0]
  for (const digit of text.replace(/=+$/, '')) {
    bits = ((bits << 6) | digits.indexOf(digit)) & 0xffff
    count += 6
    if (count >= 8) bytes += String.fromCharCode((bits >> (count -= 8)) & 0xff)
  }
  return bytes
}

class StretchProcessor extends AudioWorkletProcessor {
  readonly #change: TempoAndPitch
  #tempo: number
  /** Pieces that are not played completely. */
  readonly #pieces: Piece[] = []
  /** Samples that were received, and those that were pushed to the kernel. */
  #received = 0
  #pushed = 0
  #hasAll = false
  #output: readonly Float32Array[] = []
  #at: number
  #hops = 0
  #isOpen = true

  constructor({ processorOptions }: { processorOptions: StretcherOptions }) {
    super()
    this.#tempo = processorOptions.tempo
    this.#change = new TempoAndPitch({ ...processorOptions, sampleRate, channelCount: 2 })
    this.#at = this.#change.hop
    this.port.onmessage = ({ data }: MessageEvent<ToStretcher>) => this.#take(data)
  }

  process(_: unknown, outputs: Float32Array[][]): boolean {
    const planes = outputs.flat()
    const count = planes[0]?.length ?? 0
    for (let filled = 0; filled < count && this.#isOpen;) {
      if (this.#at === this.#change.hop && !this.#next(filled)) break
      const taken = Math.min(count - filled, this.#change.hop - this.#at)
      planes.forEach((plane, index) => {
        const from = this.#output[index]?.subarray(this.#at, this.#at + taken)
        if (from) plane.set(from, filled)
      })
      this.#at += taken
      filled += taken
    }
    return this.#isOpen
  }

  #take(message: ToStretcher): void {
    if (message.kind === 'close') this.#isOpen = false
    else if (message.kind === 'tempo') this.#change.setTempo((this.#tempo = message.tempo))
    else if (message.kind === 'end') this.#hasAll = true
    else {
      this.#pieces.push({ ...message, start: this.#received })
      this.#received += message.planes[0]?.length ?? 0
    }
  }

  /** Pulls the next samples; false while there are none, or after the last ones. */
  #next(filled: number): boolean {
    const { position } = this.#change
    if (this.#hasAll && position >= this.#received) {
      this.#isOpen = false
      this.port.postMessage({ kind: 'ended' } satisfies FromStretcher)
      return false
    }
    let output = this.#change.pull()
    while (!output && this.#push()) output = this.#change.pull()
    if (!output) return false
    this.#output = output
    this.#at = 0
    this.#mark(position, currentTime + filled / sampleRate)
    return true
  }

  /** Pushes a block to the kernel; false if there is nothing to push. */
  #push(): boolean {
    const piece = this.#pieces.find(({ start, planes }) => start + (planes[0]?.length ?? 0) > this.#pushed)
    if (piece) {
      const from = this.#pushed - piece.start
      const block = piece.planes.map((plane) => plane.subarray(from, from + blockSamples))
      this.#change.push(block)
      this.#pushed += block[0]?.length ?? 0
    } else if (this.#hasAll && this.#pushed === this.#received) {
      this.#change.end()
      this.#pushed++
    } else return false
    return true
  }

  #mark(input: number, at: number): void {
    let isNext = this.#hops++ % hopsPerMark === 0
    while (this.#pieces[1] && this.#pieces[1].start <= input) {
      this.#pieces.shift()
      isNext = true
    }
    const [piece] = this.#pieces
    if (!isNext || !piece) return
    const position = piece.position + (input - piece.start) / sampleRate
    const ahead = (this.#received - input) / sampleRate
    this.port.postMessage({ kind: 'mark', at, position, tempo: this.#tempo, ahead } satisfies FromStretcher)
  }
}

class LimitProcessor extends AudioWorkletProcessor {
  readonly #limiter = new Limiter(sampleRate)

  process([input = []]: Float32Array[][], [output = []]: Float32Array[][]): boolean {
    this.#limiter.process(input, output)
    return true
  }
}

registerProcessor('stemwork-stretch', StretchProcessor)
registerProcessor('stemwork-limit', LimitProcessor)
