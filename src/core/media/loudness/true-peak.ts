import { createDotProduct, type DotProduct } from '../dsp/kernels/dot-product.js'
import type { Kernel } from '../dsp/kernels/kernel.js'
import { besselI0 } from '../dsp/low-pass.js'

/** Coefficients of one phase of the interpolation. */
const taps = 24
/** Shape of the Kaiser window: 60 dB. */
const beta = 5.65
/** Samples per run. Not shorter than the filter, so that it reaches back into one run at most. */
const runSamples = 32
const pieceSamples = 4096

/**
 * The highest level of one channel, also between its samples (ITU-R BS.1770-5, annex 2): of the signal at four times
 * its rate, or at the factor that makes it at least 192 kHz. Runs of samples so low that no interpolated value can
 * exceed the current peak are skipped, which does not change the result.
 */
export class TruePeak {
  /** Linear, at least the highest sample. */
  peak = 0
  /** The highest sample. */
  highest = 0
  readonly #phaseCount: number
  /** The largest sum of magnitudes of a phase: the most that the filter can make of samples of at most 1. */
  readonly #reach: number
  /** The phases one after another, then the end of the previous piece, then the current piece. */
  readonly #kernel: Kernel<DotProduct>
  readonly #window: Float32Array
  #highestBefore = 0

  constructor(sampleRate: number) {
    const factor = sampleRate < 96_000 ? 4 : sampleRate < 192_000 ? 2 : 1
    this.#phaseCount = factor - 1
    const phases = Array.from({ length: this.#phaseCount }, (_, index) => phase((index + 1) / factor))
    this.#reach = Math.max(0, ...phases.map((row) => row.reduce((sum, value) => sum + Math.abs(value), 0)))
    this.#kernel = createDotProduct(this.#phaseCount * taps + taps + pieceSamples)
    phases.forEach((row, index) => this.#kernel.memory.set(row, index * taps))
    this.#window = this.#kernel.memory.subarray(this.#phaseCount * taps)
  }

  add(plane: Float32Array): void {
    for (let from = 0; from < plane.length; from += pieceSamples)
      this.#addPiece(plane.subarray(from, from + pieceSamples))
  }

  /** Ends the signal, as if silence followed. Returns the peak. */
  finish(): number {
    this.add(new Float32Array(taps))
    return this.peak
  }

  #addPiece(piece: Float32Array): void {
    const window = this.#window
    window.set(piece, taps)
    for (let from = 0; from < piece.length; from += runSamples) {
      const to = Math.min(from + runSamples, piece.length)
      let highest = 0
      for (let i = from; i < to; i++) {
        const level = Math.abs(piece[i]!)
        if (level > highest) highest = level
      }
      this.highest = Math.max(this.highest, highest)
      this.peak = Math.max(this.peak, highest)
      if (Math.max(highest, this.#highestBefore) * this.#reach > this.peak) this.#interpolate(from, to)
      // A shortened run does not cover the filter's length on its own.
      this.#highestBefore = to - from < taps ? Math.max(highest, this.#highestBefore) : highest
    }
    window.copyWithin(0, piece.length, piece.length + taps)
  }

  #interpolate(from: number, to: number): void {
    const { dotProduct } = this.#kernel
    const end = this.#phaseCount * taps
    let { peak } = this
    for (let row = 0; row < end; row += taps) {
      for (let i = from; i < to; i++) {
        const level = Math.abs(dotProduct(row, end + i + 1, taps))
        if (level > peak) peak = level
      }
    }
    this.peak = peak
  }
}

/** A windowed sinc for the position `offset` after the middle sample; it sums to 1. */
function phase(offset: number): Float32Array {
  const half = taps / 2
  const row = Array.from({ length: taps }, (_, tap) => {
    const time = tap - half + 1 - offset
    const angle = Math.PI * time
    return (Math.sin(angle) / angle) * (besselI0(beta * Math.sqrt(1 - (time / half) ** 2)) / besselI0(beta))
  })
  const sum = row.reduce((total, value) => total + value, 0)
  return Float32Array.from(row, (value) => value / sum)
}
