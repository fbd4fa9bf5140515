import { ComplexFft } from './complex-fft.js'
import { onsetFinder } from './onset-finder.js'
import { createSpectra, PhaseTurns, type Spectrum } from './phase-turns.js'
import { TimeMap } from './time-map.js'

export interface TimeStretchOptions {
  /** In Hz; sets the length of the frames. */
  sampleRate: number
  /** Channels of each part. */
  channelCount: number
  /** Parts that are heard together, such as stems. Their sum determines how all are processed. Default: 1. */
  partCount?: number
  /** Length of the output relative to the input, 0.25 to 4. Default: 1. */
  ratio?: number
}

export const leastRatio = 0.25
export const mostRatio = 4

/** Seconds of a frame: short enough for speech and drums, long enough for the notes of a bass. */
const windowSeconds = 0.046
const overlap = 4

/**
 * Makes audio longer or shorter at its pitch, block by block: a phase vocoder with one set of decisions for all
 * channels of all parts. Channels keep their differences, and processed parts sum to the processed sum (to the rounding
 * of floats). Onsets pass unchanged, at the right time. With a ratio of 1 the output is the input.
 *
 * Plain TypeScript, so that it runs in an `AudioWorklet` too. The planes of part `p` are those from `p * channelCount`
 * on.
 */
export class TimeStretch {
  /** Samples per channel that each `pull` returns. */
  readonly hop: number
  readonly #size: number
  readonly #channelCount: number
  readonly #partCount: number
  readonly #fft: ComplexFft
  /** The windows of the analysis and of the synthesis; the latter also scales. */
  readonly #window: Float64Array
  readonly #fade: Float64Array
  readonly #map: TimeMap
  readonly #onsets: ReturnType<typeof onsetFinder>
  readonly #turns: PhaseTurns
  /** Input from `inputStart` on, `filled` samples of it. Zeros before the audio. */
  #input: Float32Array[]
  #inputStart: number
  #filled: number
  #received = 0
  #ended = false
  /** Position in the output of the next frame's middle. */
  #middle: number
  readonly #sums: Float32Array[]
  readonly #output: Float32Array[]
  readonly #parts: Spectrum[]
  readonly #whole: Spectrum[]
  readonly #before: Spectrum[]
  readonly #last: Spectrum[]

  constructor({ sampleRate, channelCount, partCount = 1, ratio = 1 }: TimeStretchOptions) {
    const size = 2 ** Math.round(Math.log2(windowSeconds * sampleRate))
    const planeCount = channelCount * partCount
    const planes = (length: number) => Array.from({ length: planeCount }, () => new Float32Array(length))
    this.#size = size
    this.hop = size / overlap
    this.#channelCount = channelCount
    this.#partCount = partCount
    this.#fft = new ComplexFft(size)
    this.#window = Float64Array.from({ length: size }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / size))
    // The squares of four overlapping windows sum to 1.5.
    this.#fade = this.#window.map((value) => value / (1.5 * size))
    this.#map = new TimeMap(size, checkedRatio(ratio))
    this.#onsets = onsetFinder(sampleRate, channelCount)
    this.#turns = new PhaseTurns(size)
    this.#filled = size / leastRatio
    this.#inputStart = -this.#filled
    this.#input = planes(2 * this.#filled)
    this.#middle = this.hop - size / 2
    this.#sums = planes(size)
    this.#output = planes(this.hop)
    const pairs = Math.ceil(channelCount / 2)
    this.#parts = createSpectra(pairs * partCount, size)
    // A single part is its own sum.
    this.#whole = partCount === 1 ? this.#parts : createSpectra(pairs, size)
    this.#before = createSpectra(pairs, size)
    this.#last = createSpectra(pairs, size)
  }

  /** Takes effect with the next frame. @throws RangeError outside 0.25 to 4 */
  setRatio(ratio: number): void {
    this.#map.setRatio(checkedRatio(ratio), this.#middle)
  }

  /** @param planes one for each channel of each part, all of the same length */
  push(planes: readonly Float32Array[]): void {
    const count = planes[0]!.length
    this.#reserve(count)
    planes.forEach((plane, index) => this.#input[index]!.set(plane, this.#filled))
    for (const onset of this.#onsets.push(this.#channelsOf(planes), count)) this.#map.addOnset(onset)
    this.#filled += count
    this.#received += count
  }

  /** No more input follows. The caller cuts the output where it should end: at the ratio times the input's length. */
  end(): void {
    this.#ended = true
  }

  /**
   * The next `hop` samples of each plane. They are overwritten by the next call.
   *
   * @returns undefined when more input is needed, or after the end
   */
  pull(): readonly Float32Array[] | undefined {
    // The first frames only add to later output: they begin before the audio.
    for (let isReady = false; !isReady;) {
      const position = Math.round(this.#map.inputAt(this.#middle))
      if (!this.#hasInput(position)) return undefined
      this.#addFrame(position)
      isReady = this.#middle >= this.#size / 2
      this.#middle += this.hop
      this.#sums.forEach((sum, index) => {
        this.#output[index]!.set(sum.subarray(0, this.hop))
        sum.copyWithin(0, this.hop)
        sum.fill(0, this.#size - this.hop)
      })
    }
    return this.#output
  }

  /** Position in the input, in samples, where the next `pull` begins; near onsets only to some milliseconds. */
  get position(): number {
    return Math.max(0, this.#map.inputAt(this.#middle) - this.#size / 2 / this.#map.ratio)
  }

  #hasInput(position: number): boolean {
    const missing = position + this.#size / 2 + this.#map.lookAhead - this.#inputStart - this.#filled
    if (missing <= 0) return true
    // The last samples of the output come from frames whose middle is half a frame later.
    const beyond = position - this.#received
    if (!this.#ended || beyond > this.#size * (0.5 + 0.5 / this.#map.ratio)) return false
    const silence = Math.ceil(missing) + this.#size
    this.#reserve(silence)
    for (const plane of this.#input) plane.fill(0, this.#filled, this.#filled + silence)
    this.#filled += silence
    return true
  }

  #addFrame(position: number): void {
    const start = position - this.#size / 2 - this.#inputStart
    const pairs = this.#before.length
    this.#parts.forEach((spectrum, index) => {
      clear(spectrum)
      this.#addInput(spectrum, start, Math.floor(index / pairs), index % pairs)
      this.#fft.transform(spectrum.re, spectrum.im)
    })
    this.#before.forEach((spectrum, pair) => {
      clear(spectrum)
      for (let part = 0; part < this.#partCount; part++) this.#addInput(spectrum, start - this.hop, part, pair)
      this.#fft.transform(spectrum.re, spectrum.im)
    })
    if (this.#whole !== this.#parts) this.#sumParts()
    this.#turns.find(this.#whole, this.#before, this.#last, this.#map.isAtOnset(this.#middle))
    this.#whole.forEach(({ re, im }, pair) => {
      const last = this.#last[pair]!
      last.re.set(re)
      last.im.set(im)
      this.#turns.apply(last)
    })
    this.#parts.forEach((spectrum, index) => {
      this.#turns.apply(spectrum)
      this.#fft.transform(spectrum.im, spectrum.re)
      this.#overlapAdd(spectrum, Math.floor(index / pairs), index % pairs)
    })
  }

  /** Adds a part's two channels, windowed, as the real and the imaginary part of a signal. */
  #addInput({ re, im }: Spectrum, start: number, part: number, pair: number): void {
    const first = part * this.#channelCount + 2 * pair
    const window = this.#window
    const left = this.#input[first]!
    for (let i = 0; i < this.#size; i++) re[i]! += window[i]! * left[start + i]!
    if (2 * pair + 1 === this.#channelCount) return
    const right = this.#input[first + 1]!
    for (let i = 0; i < this.#size; i++) im[i]! += window[i]! * right[start + i]!
  }

  #overlapAdd({ re, im }: Spectrum, part: number, pair: number): void {
    const first = part * this.#channelCount + 2 * pair
    const fade = this.#fade
    const left = this.#sums[first]!
    for (let i = 0; i < this.#size; i++) left[i]! += fade[i]! * re[i]!
    if (2 * pair + 1 === this.#channelCount) return
    const right = this.#sums[first + 1]!
    for (let i = 0; i < this.#size; i++) right[i]! += fade[i]! * im[i]!
  }

  #sumParts(): void {
    this.#whole.forEach(clear)
    this.#parts.forEach(({ re, im }, index) => {
      const whole = this.#whole[index % this.#whole.length]!
      for (let bin = 0; bin < this.#size; bin++) {
        whole.re[bin]! += re[bin]!
        whole.im[bin]! += im[bin]!
      }
    })
  }

  /** The channels of the sum of all parts. */
  #channelsOf(planes: readonly Float32Array[]): readonly Float32Array[] {
    if (this.#partCount === 1) return planes
    return Array.from({ length: this.#channelCount }, (_, channel) => {
      const sum = planes[channel]!.slice()
      for (let plane = channel + this.#channelCount; plane < planes.length; plane += this.#channelCount)
        for (let i = 0; i < sum.length; i++) sum[i]! += planes[plane]![i]!
      return sum
    })
  }

  /** Makes room for that many samples, and drops samples that no frame needs any more. */
  #reserve(count: number): void {
    // A change of the ratio may move the map back, by less than a window.
    const needed = Math.floor(this.#map.inputAt(this.#middle)) - 2 * this.#size - this.hop
    const dropped = Math.min(this.#filled, Math.max(0, needed - this.#inputStart))
    const capacity = this.#input[0]!.length
    if (this.#filled + count <= capacity) return
    const size = this.#filled - dropped + count > capacity ? 2 * (this.#filled - dropped + count) : capacity
    this.#input = this.#input.map((plane) => {
      const target = size === capacity ? plane : new Float32Array(size)
      target.set(plane.subarray(dropped, this.#filled))
      return target
    })
    this.#inputStart += dropped
    this.#filled -= dropped
  }
}

function clear({ re, im }: Spectrum): void {
  re.fill(0)
  im.fill(0)
}

function checkedRatio(ratio: number): number {
  if (ratio >= leastRatio && ratio <= mostRatio) return ratio
  throw new RangeError(`expected a ratio of ${leastRatio} to ${mostRatio}, not ${ratio}`)
}
