import { periodicHann, RealFft } from './fft.js'
import { createFrameKernels, type FrameKernels } from './kernels/frame-kernels.js'
import type { Kernel } from './kernels/kernel.js'
import { copyRows, type Rows } from './strided-rows.js'

export interface StftOptions {
  /** Points of a frame (n_fft): a size that `RealFft` supports. */
  size: number
  /** Samples from one frame to the next, at most `size`. */
  hop: number
  /** Analysis and synthesis window of `size` samples. Default: `periodicHann(size)`. */
  window?: Float32Array
  /** Number of bins kept, from 0 up. Default: all, `size / 2 + 1`. Dropped ones are zero in the inverse. */
  bins?: number
}

/** Layout of the arrays of a spectrum: bin `b` of frame `t` is at `t * frameStride + b * binStride`. */
export interface SpectrumLayout {
  frameStride: number
  binStride: number
}

/**
 * Short-time Fourier transform of parts of a signal, unnormalized, and its inverse. It does not pad: for centred
 * frames, pass a signal that already has `size / 2` samples before the first frame's centre (`reflectedSlice`).
 *
 * Frames are processed in batches and without allocations. Whole rows are copied between the caller's arrays, the
 * memory of the kernels and that of the FFT; these copies cost little compared with doing the loops in JavaScript.
 */
export class Stft {
  readonly size: number
  readonly hop: number
  readonly bins: number
  readonly #fft: RealFft
  readonly #kernels: Kernel<FrameKernels>
  readonly #offsets: ReturnType<typeof memoryOffsets>
  readonly #squaredWindow: Float32Array
  /** 1 / overlap-added squared window, for the last requested frame count. */
  #envelope = { frameCount: 0, inverse: new Float32Array(0) }

  private constructor({ size, hop, bins = size / 2 + 1, window = periodicHann(size) }: StftOptions, fft: RealFft) {
    this.size = size
    this.hop = hop
    this.bins = bins
    this.#fft = fft
    this.#offsets = memoryOffsets(size, hop)
    this.#kernels = createFrameKernels(this.#offsets.end)
    this.#kernels.memory.set(window, this.#offsets.window)
    this.#kernels.memory.set(
      window.map((value) => value / size),
      this.#offsets.synthesis,
    )
    this.#squaredWindow = window.map((value) => value * value)
  }

  static async create(options: StftOptions): Promise<Stft> {
    return new Stft(options, await RealFft.create(options.size, batchFrames))
  }

  /** Number of frames that fit into `sampleCount` samples without padding. */
  framesIn(sampleCount: number): number {
    return sampleCount < this.size ? 0 : 1 + Math.floor((sampleCount - this.size) / this.hop)
  }

  /** Number of samples that `frameCount` frames cover. */
  samplesOf(frameCount: number): number {
    return frameCount === 0 ? 0 : (frameCount - 1) * this.hop + this.size
  }

  /** Frame `t` is the transform of `window * signal[t * hop .. t * hop + size)`, written to `re` and `im`. */
  forward(signal: Float32Array, frameCount: number, re: Float32Array, im: Float32Array, layout: SpectrumLayout): void {
    for (const [first, count] of batches(frameCount)) {
      this.#analyse(signal, first, count)
      this.#store(first, count, re, im, layout)
    }
  }

  /**
   * Reconstructs the signal from its frames: inverse transforms, times the window, overlap-added, divided by the
   * overlap-added squared window (guarded by 1e-8). Writes `samplesOf(frameCount)` samples into `out`; the `size - hop`
   * at each end lack the frames beyond, and are exact only where the given frames alone determine them.
   *
   * @param silentFrames silent frames before the first and after the last one; they only count in the divisor
   */
  inverse(
    re: Float32Array,
    im: Float32Array,
    frameCount: number,
    layout: SpectrumLayout,
    out: Float32Array,
    silentFrames = 0,
  ): void {
    const envelope = this.#inverseEnvelope(frameCount + 2 * silentFrames).subarray(silentFrames * this.hop)
    this.#startSynthesis()
    for (const [first, count] of batches(frameCount)) {
      this.#load(first, count, re, im, layout)
      this.#synthesize(first, count, first + count === frameCount, envelope, out)
    }
  }

  /**
   * The same as `forward`, `change` of each frame and `inverse`, without the memory of a spectrum. Replaces the signal,
   * `samplesOf(frameCount)` samples.
   *
   * @param change gets the bins of frame `frame`, valid until it returns
   */
  filter(
    signal: Float32Array,
    frameCount: number,
    change: (re: Float32Array, im: Float32Array, frame: number) => void,
  ): void {
    const { bins } = this
    const { memory } = this.#kernels
    const at = this.#offsets
    const half = this.size / 2
    const envelope = this.#inverseEnvelope(frameCount)
    this.#startSynthesis()
    for (const [first, count] of batches(frameCount)) {
      this.#analyse(signal, first, count)
      for (let row = 0; row < count; row++) {
        const [re, im] = [at.re + row * at.pitch, at.im + row * at.pitch]
        // The FFT stores the last bin as the imaginary part of the first one.
        memory[re + half] = memory[im]!
        memory[im] = memory[im + half] = 0
        for (const plane of [re, im]) memory.fill(0, plane + bins, plane + half + 1)
        change(memory.subarray(re, re + bins), memory.subarray(im, im + bins), first + row)
        memory[im] = memory[re + half]!
      }
      this.#synthesize(first, count, first + count === frameCount, envelope, signal)
    }
  }

  close(): void {
    this.#fft.close()
  }

  /** The spectra of a batch of frames, in the kernels' planes. */
  #analyse(signal: Float32Array, first: number, count: number): void {
    const { size, hop } = this
    const { memory, multiply, split } = this.#kernels
    const at = this.#offsets
    memory.set(signal.subarray(first * hop, first * hop + this.samplesOf(count)), at.input)
    for (let row = 0; row < count; row++) multiply(at.rows + row * size, at.input + row * hop, at.window, size)
    this.#fft.time().set(memory.subarray(at.rows, at.rows + count * size))
    this.#fft.forward(count)
    memory.set(this.#fft.spectrum().subarray(0, count * size), at.rows)
    for (let row = 0; row < count; row++)
      split(at.rows + row * size, at.re + row * at.pitch, at.im + row * at.pitch, size / 2)
  }

  #startSynthesis(): void {
    this.#kernels.memory.fill(0, this.#offsets.signal, this.#offsets.envelope)
  }

  /** Adds the frames of a batch, from the kernels' planes, and writes the samples that later batches cannot change. */
  #synthesize(first: number, count: number, isLast: boolean, envelope: Float32Array, out: Float32Array): void {
    const { size, hop } = this
    const { memory, multiply, multiplyAdd, merge } = this.#kernels
    const at = this.#offsets
    const overlap = size - hop
    for (let row = 0; row < count; row++)
      merge(at.rows + row * size, at.re + row * at.pitch, at.im + row * at.pitch, size / 2)
    this.#fft.spectrum().set(memory.subarray(at.rows, at.rows + count * size))
    this.#fft.inverse(count)
    memory.set(this.#fft.time().subarray(0, count * size), at.rows)
    for (let row = 0; row < count; row++) multiplyAdd(at.signal + row * hop, at.rows + row * size, at.synthesis, size)

    const finished = isLast ? this.samplesOf(count) : count * hop
    memory.set(envelope.subarray(first * hop, first * hop + finished), at.envelope)
    multiply(at.rows, at.signal, at.envelope, finished)
    out.set(memory.subarray(at.rows, at.rows + finished), first * hop)
    memory.copyWithin(at.signal, at.signal + count * hop, at.signal + count * hop + overlap)
    memory.fill(0, at.signal + overlap, at.envelope)
  }

  /**
   * Copies from the kernels' planes to the caller's layout. The FFT stores the last bin as the imaginary part of the
   * first one.
   */
  #store(first: number, count: number, re: Float32Array, im: Float32Array, layout: SpectrumLayout): void {
    const { memory } = this.#kernels
    const at = this.#offsets
    const { frameStride, binStride } = layout
    const half = this.size / 2
    const inner = Math.min(this.bins, half)
    const there = rowsOf(layout, first)
    copyRows(memory, this.#rows(at.re), re, there, { rows: count, length: inner })
    copyRows(memory, this.#rows(at.im), im, there, { rows: count, length: inner })
    for (let row = 0; row < count; row++) {
      const target = (first + row) * frameStride
      im[target] = 0
      if (this.bins <= half) continue
      re[target + half * binStride] = memory[at.im + row * at.pitch]!
      im[target + half * binStride] = 0
    }
  }

  #load(first: number, count: number, re: Float32Array, im: Float32Array, layout: SpectrumLayout): void {
    const { memory } = this.#kernels
    const at = this.#offsets
    const { frameStride, binStride } = layout
    const half = this.size / 2
    const inner = Math.min(this.bins, half)
    if (inner < half) memory.fill(0, at.re, at.signal)
    const there = rowsOf(layout, first)
    copyRows(re, there, memory, this.#rows(at.re), { rows: count, length: inner })
    copyRows(im, there, memory, this.#rows(at.im), { rows: count, length: inner })
    for (let row = 0; row < count; row++) {
      memory[at.im + row * at.pitch] = this.bins > half ? re[(first + row) * frameStride + half * binStride]! : 0
    }
  }

  #rows(start: number): Rows {
    return { start, pitch: this.#offsets.pitch, stride: 1 }
  }

  #inverseEnvelope(frameCount: number): Float32Array {
    if (this.#envelope.frameCount !== frameCount) {
      this.#envelope = {
        frameCount,
        inverse: inverseEnvelope(this.#squaredWindow, this.hop, this.samplesOf(frameCount)),
      }
    }
    return this.#envelope.inverse
  }
}

function rowsOf({ frameStride, binStride }: SpectrumLayout, first: number): Rows {
  return { start: first * frameStride, pitch: frameStride, stride: binStride }
}

/**
 * More than a window away from both ends, the envelope has the period `hop`, so only the ends and one hop are summed.
 */
function inverseEnvelope(squaredWindow: Float32Array, hop: number, sampleCount: number): Float32Array<ArrayBuffer> {
  const size = squaredWindow.length
  const lastFrame = sampleCount - size
  const envelope = new Float32Array(sampleCount)
  for (let i = 0; i < sampleCount; i++) {
    if (i >= size + hop && i < lastFrame) {
      envelope[i] = envelope[i - hop]!
      continue
    }
    let sum = 0
    for (let at = Math.min(lastFrame, i - (i % hop)); at >= 0 && at > i - size; at -= hop) sum += squaredWindow[i - at]!
    envelope[i] = 1 / Math.max(sum, 1e-8)
  }
  return envelope
}

/** Offsets of the data in the kernels' memory, in floats. */
function memoryOffsets(size: number, hop: number) {
  const rowFloats = batchFrames * size
  const signalFloats = (batchFrames - 1) * hop + size
  const pitch = size / 2 + 16
  let end = 0
  const next = (floats: number) => (end += floats) - floats
  return {
    window: next(size),
    synthesis: next(size),
    /**
     * Frames of a batch in the time domain or, as pairs, in the frequency domain; also the finished samples of a batch.
     */
    rows: next(Math.max(rowFloats, signalFloats)),
    re: next(batchFrames * pitch),
    im: next(batchFrames * pitch),
    /** Distance between the real (or imaginary) parts of consecutive frames. */
    pitch,
    /** Sums of the samples that a batch covers. */
    signal: next(signalFloats),
    envelope: next(signalFloats),
    /** The samples of a batch before their transform. */
    input: next(signalFloats),
    end,
  }
}

/** Frames per batch: the data of a batch fits into the second-level cache. */
const batchFrames = 16

function* batches(frameCount: number): Generator<[first: number, count: number], void, undefined> {
  for (let first = 0; first < frameCount; first += batchFrames) yield [first, Math.min(batchFrames, frameCount - first)]
}
