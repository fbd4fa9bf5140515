import { createWienerKernels, type WienerFilter, type WienerKernels, type WienerSums } from './wiener-kernels.js'

/** Both channels, `[2, bins, frames]`. */
export interface StereoSpectrum {
  re: Float32Array<ArrayBuffer>
  im: Float32Array<ArrayBuffer>
}

export interface RefinementSizes {
  bins: number
  frames: number
  /** Frames over which a source's place between the channels is taken as constant. */
  windowFrames: number
}

/** Keeps the matrices invertible; the reference implementation's `eps` in single precision. */
const guard = 1.1920929e-7

/** The mixture is scaled to this peak, so that the guard means the same at every level. The reference only scales down. */
const workingPeak = 10

/** Quieter windows are left alone: single precision cannot hold their squares. */
const silence = 1e-15

/** Floats of all planes of a block of bins: half of what a processor's second-level cache has. */
const blockFloats = 65_536

/**
 * One step of expectation-maximisation of the local Gaussian model with two sources, the vocals and the rest of the magnitudes
 * (Duong, Vincent, Gribonval 2010; `expectation_maximization` of Open-Unmix): each source has a power `v` for every bin and
 * frame and a 2 x 2 covariance `R` between the channels for every bin and window; the vocals are
 * `v1 R1 (v1 R1 + v2 R2 + guard)^-1 x`.
 */
export class VocalsRefinement {
  readonly #sizes: RefinementSizes
  readonly #blockBins: number
  readonly #kernels: WienerKernels

  constructor(sizes: RefinementSizes) {
    this.#sizes = sizes
    this.#blockBins = Math.min(sizes.bins, Math.max(1, Math.floor(blockFloats / 8 / sizes.frames)))
    this.#kernels = createWienerKernels(this.#blockBins, sizes.frames)
  }

  /**
   * Writes the magnitudes of the mixture, `[2, bins, frames]`.
   *
   * @returns the largest one of each frame, for `refine`
   */
  magnitudes(mixture: StereoSpectrum, magnitude: Float32Array): Float32Array {
    const { peaks, plane, magnitudes } = this.#kernels
    peaks.fill(0)
    this.#eachBlock((left, right, rows) => {
      copyIn(plane('leftRe'), mixture.re, left)
      copyIn(plane('leftIm'), mixture.im, left)
      copyIn(plane('rightRe'), mixture.re, right)
      copyIn(plane('rightIm'), mixture.im, right)
      for (let row = 0; row < rows; row++) {
        magnitudes('left', row)
        magnitudes('right', row)
      }
      copyOut(plane('leftMixture'), magnitude, left)
      copyOut(plane('rightMixture'), magnitude, right)
    })
    return peaks.slice()
  }

  /**
   * Turns the mixture into the vocals.
   *
   * @param magnitude that of the mixture, `[2, bins, frames]`
   * @param vocals what the network estimated, likewise
   * @param peaks what `magnitudes` returned
   * @param used frames of the track: from, to. The others are left as they are.
   */
  refine(mixture: StereoSpectrum, magnitude: Float32Array, vocals: Float32Array, peaks: Float32Array, [first, last]: readonly [number, number]): void {
    const { plane } = this.#kernels
    const windows = this.#windows(peaks, first, last)
    this.#eachBlock((left, right, rows) => {
      copyIn(plane('leftRe'), mixture.re, left)
      copyIn(plane('leftIm'), mixture.im, left)
      copyIn(plane('rightRe'), mixture.re, right)
      copyIn(plane('rightIm'), mixture.im, right)
      copyIn(plane('leftMixture'), magnitude, left)
      copyIn(plane('rightMixture'), magnitude, right)
      copyIn(plane('leftVoice'), vocals, left)
      copyIn(plane('rightVoice'), vocals, right)
      for (let row = 0; row < rows; row++) {
        for (const { from, frames, scale } of windows) {
          const sums = this.#kernels.sums(row, from, frames)
          this.#kernels.filter(row, from, frames, filterOf(sums, scale))
        }
      }
      copyOut(plane('leftRe'), mixture.re, left)
      copyOut(plane('leftIm'), mixture.im, left)
      copyOut(plane('rightRe'), mixture.re, right)
      copyOut(plane('rightIm'), mixture.im, right)
    })
  }

  /** Where a block lies in both channels, and how many rows it has. */
  #eachBlock(visit: (left: Stretch, right: Stretch, rows: number) => void): void {
    const { bins, frames } = this.#sizes
    for (let bin = 0; bin < bins; bin += this.#blockBins) {
      const rows = Math.min(this.#blockBins, bins - bin)
      const stretch = (firstBin: number): Stretch => [firstBin * frames, (firstBin + rows) * frames]
      visit(stretch(bin), stretch(bins + bin), rows)
    }
  }

  #windows(peaks: Float32Array, first: number, last: number): Window[] {
    const windows: Window[] = []
    for (let from = first; from < last; from += this.#sizes.windowFrames) {
      const frames = Math.min(this.#sizes.windowFrames, last - from)
      const peak = peaks.subarray(from, from + frames).reduce((a, b) => Math.max(a, b), 0)
      if (peak > silence) windows.push({ from, frames, scale: workingPeak / peak })
    }
    return windows
  }
}

interface Window {
  from: number
  frames: number
  scale: number
}

type Stretch = readonly [from: number, to: number]

function copyIn(plane: Float32Array, from: Float32Array, [start, end]: Stretch): void {
  plane.set(from.subarray(start, end))
}

function copyOut(plane: Float32Array, to: Float32Array, [start, end]: Stretch): void {
  to.set(plane.subarray(0, end - start), start)
}

/** The filter of a bin and window, in the notation of `WienerFilter`. */
function filterOf(sums: WienerSums, scale: number): WienerFilter {
  const voice = covariance(sums.voiceLeft, sums.voiceRight, sums.voiceRe, sums.voiceIm, scale)
  const others = covariance(sums.othersLeft, sums.othersRight, sums.othersRe, sums.othersIm, scale)
  const g = Math.sqrt(guard)
  const crossRe = voice.re * others.re + voice.im * others.im
  const crossIm = voice.im * others.re - voice.re * others.im
  return {
    scale,
    voiceDeterminant: determinant(voice),
    othersDeterminant: determinant(others),
    mixedDeterminant: Math.max(0, voice.left * others.right + voice.right * others.left - 2 * crossRe),
    voiceTrace: g * (voice.left + voice.right),
    othersTrace: g * (others.left + others.right),
    floor: g * g,
    nullLeftRe: voice.left * others.right - crossRe,
    nullLeftIm: -crossIm,
    nullUpperRe: voice.re * others.left - voice.left * others.re,
    nullUpperIm: voice.im * others.left - voice.left * others.im,
    nullLowerRe: voice.re * others.right - voice.right * others.re,
    nullLowerIm: voice.right * others.im - voice.im * others.right,
    nullRightRe: voice.right * others.left - crossRe,
    nullRightIm: crossIm,
    placeLeft: g * voice.left,
    placeRight: g * voice.right,
    placeRe: g * voice.re,
    placeIm: g * voice.im,
  }
}

/** Mean of `y y^H` over a window, per mean power: Hermitian; `re` and `im` are the upper right corner. */
interface Covariance {
  left: number
  right: number
  re: number
  im: number
}

function covariance(left: number, right: number, re: number, im: number, scale: number): Covariance {
  const gain = scale ** 2 / ((scale ** 2 * (left + right)) / 2 + guard)
  return { left: gain * left, right: gain * right, re: gain * re, im: gain * im }
}

/** Not below zero, where rounding may bring that of a source which lies in one place. */
function determinant({ left, right, re, im }: Covariance): number {
  return Math.max(0, left * right - re ** 2 - im ** 2)
}
