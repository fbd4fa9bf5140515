import { copyRows, rowCount, type Rows } from './strided-rows.js'
import { createWienerMemory, tileFrames, tilePlanes, type WienerMemory } from './wiener-memory.js'

/** Both channels, `[2, frames, bins]`. */
export interface StereoSpectrum {
  re: Float32Array<ArrayBuffer>
  im: Float32Array<ArrayBuffer>
}

export interface RefinementSizes {
  bins: number
  frameCount: number
  /** Frames over which the stereo position of a source is treated as constant. */
  windowFrames: number
}

/** Keeps the matrices invertible; the reference implementation's `eps` in single precision. */
const guard = 1.1920929e-7

/**
 * The mixture is scaled to this peak, so that the guard means the same at every level. The reference only scales down.
 */
const workingPeak = 10

/** Windows below this peak are left unchanged: they are inaudible. */
const silence = 1e-30

/**
 * One step of expectation-maximization of the local Gaussian model with two sources, the vocals and the rest of the
 * magnitudes (Duong, Vincent, Gribonval 2010; `expectation_maximization` of Open-Unmix): each source has a power `v`
 * for every bin and frame and a 2 x 2 covariance `R` between the channels for every bin and window; the vocals are
 * `v1 R1 (v1 R1 + v2 R2 + guard)^-1 x`.
 *
 * Networks use magnitudes as `[2, bins, frames]` while spectra are kept frame by frame, so only magnitudes are
 * transposed.
 */
export class VocalsRefinement {
  readonly #sizes: RefinementSizes
  readonly #memory: WienerMemory

  constructor(sizes: RefinementSizes) {
    this.#sizes = sizes
    this.#memory = createWienerMemory(sizes.bins, sizes.windowFrames)
    // The same for all bins, and for the zeros after each row.
    this.#memory.filters.floor.fill(guard)
  }

  /**
   * Writes the magnitudes of the mixture.
   *
   * @returns the largest magnitude of each frame, for `refine`
   */
  magnitudes(mixture: StereoSpectrum, magnitude: Float32Array): Float32Array {
    const { memory, pitch, tileRow, voiceRow, magnitudes } = this.#memory
    const { bins, frameCount } = this.#sizes
    const voices = { start: voiceRow(0, 0), pitch, stride: 1 }
    const peaks = new Float32Array(frameCount)
    const [re, im] = [tileRow('leftRe', 0), tileRow('leftIm', 0)]
    for (const channel of [0, 1]) {
      for (let first = 0; first < frameCount; first += rowCount) {
        const rows = Math.min(rowCount, frameCount - first)
        for (let row = 0; row < rows; row++) {
          memory.set(this.#row(mixture.re, channel, first + row), re)
          memory.set(this.#row(mixture.im, channel, first + row), im)
          peaks[first + row] = Math.max(peaks[first + row]!, magnitudes(re, im, voiceRow(0, row)))
        }
        copyRows(memory, voices, magnitude, this.#frames(channel, first), { rows, length: bins })
      }
    }
    return peaks
  }

  /**
   * Turns the mixture into the vocals.
   *
   * @param vocals magnitudes that the network estimated
   * @param peaks what `magnitudes` returned
   * @param used frames of the track, `[first, end)`. All other frames are left unchanged.
   */
  refine(
    mixture: StereoSpectrum,
    vocals: Float32Array,
    peaks: Float32Array,
    [first, last]: readonly [number, number],
  ): void {
    for (let from = first; from < last; from += this.#sizes.windowFrames) {
      const window = { from, frameCount: Math.min(this.#sizes.windowFrames, last - from) }
      const peak = peaks.subarray(from, from + window.frameCount).reduce((a, b) => Math.max(a, b), 0)
      if (peak > silence) this.#refineWindow(mixture, vocals, window, workingPeak / peak)
    }
  }

  #refineWindow(
    mixture: StereoSpectrum,
    vocals: Float32Array,
    { from, frameCount }: { from: number; frameCount: number },
    scale: number,
  ): void {
    const { memory, pitch, voiceRow, addToSums, filter, sums } = this.#memory
    const length = this.#sizes.bins
    for (const channel of [0, 1]) {
      for (let row = 0; row < frameCount; row += rowCount) {
        const rows = Math.min(rowCount, frameCount - row)
        const voices = { start: voiceRow(channel, row), pitch, stride: 1 }
        copyRows(vocals, this.#frames(channel, from + row), memory, voices, { rows, length })
      }
    }
    for (const sum of Object.values(sums)) sum.fill(0)
    this.#eachTile(mixture, from, frameCount, (rows, offset) => addToSums(rows, offset, scale))
    this.#findFilters()
    this.#eachTile(mixture, from, frameCount, (rows, offset) => {
      filter(rows, offset)
      this.#eachTileRow(mixture, from + offset, rows, (target, row) =>
        target.set(memory.subarray(row, row + target.length)),
      )
    })
  }

  /**
   * Copies the mixture's spectra into the kernels' memory, a few frames at a time; `offset` is the first one's index in
   * the window.
   */
  #eachTile(
    mixture: StereoSpectrum,
    from: number,
    frameCount: number,
    visit: (rows: number, offset: number) => void,
  ): void {
    const { memory } = this.#memory
    for (let offset = 0; offset < frameCount; offset += tileFrames) {
      const rows = Math.min(tileFrames, frameCount - offset)
      this.#eachTileRow(mixture, from + offset, rows, (source, row) => memory.set(source, row))
      visit(rows, offset)
    }
  }

  /** Visits the rows of the mixture's four planes, with their offsets in the kernels' memory. */
  #eachTileRow(
    { re, im }: StereoSpectrum,
    frame: number,
    rows: number,
    visit: (own: Float32Array, row: number) => void,
  ): void {
    tilePlanes.forEach((plane, index) => {
      for (let row = 0; row < rows; row++) {
        visit(this.#row(index % 2 === 0 ? re : im, index >> 1, frame + row), this.#memory.tileRow(plane, row))
      }
    })
  }

  #row(plane: Float32Array, channel: number, frame: number): Float32Array {
    const { bins, frameCount } = this.#sizes
    const start = (channel * frameCount + frame) * bins
    return plane.subarray(start, start + bins)
  }

  /** Frames of a channel in the magnitudes of a network. */
  #frames(channel: number, first: number): Rows {
    const { bins, frameCount } = this.#sizes
    return { start: channel * bins * frameCount + first, pitch: 1, stride: frameCount }
  }

  /** Turns the sums of all bins into their filters, in the notation of `filterFields`. */
  #findFilters(): void {
    const { sums, filters } = this.#memory
    const g = Math.sqrt(guard)
    for (let bin = 0; bin < this.#sizes.bins; bin++) {
      const voice = covariance(sums.voiceLeft[bin]!, sums.voiceRight[bin]!, sums.voiceRe[bin]!, sums.voiceIm[bin]!)
      const others = covariance(sums.othersLeft[bin]!, sums.othersRight[bin]!, sums.othersRe[bin]!, sums.othersIm[bin]!)
      const crossRe = voice.re * others.re + voice.im * others.im
      const crossIm = voice.im * others.re - voice.re * others.im
      filters.voiceDeterminant[bin] = determinant(voice)
      filters.othersDeterminant[bin] = determinant(others)
      filters.mixedDeterminant[bin] = Math.max(0, voice.left * others.right + voice.right * others.left - 2 * crossRe)
      filters.voiceTrace[bin] = g * (voice.left + voice.right)
      filters.othersTrace[bin] = g * (others.left + others.right)
      filters.nullLeftRe[bin] = voice.left * others.right - crossRe
      filters.nullLeftIm[bin] = -crossIm
      filters.nullUpperRe[bin] = voice.re * others.left - voice.left * others.re
      filters.nullUpperIm[bin] = voice.im * others.left - voice.left * others.im
      filters.nullLowerRe[bin] = voice.re * others.right - voice.right * others.re
      filters.nullLowerIm[bin] = voice.right * others.im - voice.im * others.right
      filters.nullRightRe[bin] = voice.right * others.left - crossRe
      filters.nullRightIm[bin] = crossIm
      filters.guardLeft[bin] = g * voice.left
      filters.guardRight[bin] = g * voice.right
      filters.guardRe[bin] = g * voice.re
      filters.guardIm[bin] = g * voice.im
    }
  }
}

/** Mean of `y y^H` over a window, per mean power: Hermitian; `re` and `im` are the upper right corner. */
function covariance(left: number, right: number, re: number, im: number) {
  const gain = 1 / ((left + right) / 2 + guard)
  return { left: gain * left, right: gain * right, re: gain * re, im: gain * im }
}

/** At least zero: rounding may make the determinant of a source at a single position negative. */
function determinant({ left, right, re, im }: ReturnType<typeof covariance>): number {
  return Math.max(0, left * right - re ** 2 - im ** 2)
}
