/** The spectrum of two real signals as one complex one. */
export interface Spectrum {
  re: Float64Array
  im: Float64Array
}

export function createSpectra(count: number, size: number): Spectrum[] {
  return Array.from({ length: count }, () => ({ re: new Float64Array(size), im: new Float64Array(size) }))
}

/** Bins on each side of a peak that count for its turn. */
const bodyOfPeak = 2
/** At an onset, bins keep the input's phase where the power has grown by this factor. */
const grown = 2

/**
 * Finds the turn (rotation of the phase) of each frequency of a frame that continues the output: the best fit between
 * the last output frame and the input frame of one hop before, over all channels and the body of a peak, for all bins
 * around that peak (M. Puckette, Phase-locked vocoder, WASPAA 1995; J. Laroche and M. Dolson, Improved phase vocoder
 * time-scale modification of audio, 1999). All channels get the same turns, so their differences stay, and parts that
 * are turned separately add up to the turned whole.
 */
export class PhaseTurns {
  readonly #size: number
  /** The turns: unit vectors. Bin 0 and that of half the size are real, and not turned. */
  readonly #re: Float64Array
  readonly #im: Float64Array
  readonly #fitRe: Float64Array
  readonly #fitIm: Float64Array
  readonly #power: Float64Array
  readonly #powerBefore: Float64Array

  constructor(size: number) {
    const plane = () => new Float64Array(size / 2 + 1)
    this.#size = size
    this.#re = plane()
    this.#im = plane()
    this.#fitRe = plane()
    this.#fitIm = plane()
    this.#power = plane()
    this.#powerBefore = plane()
  }

  /**
   * @param now the frame's spectra
   * @param before spectra of the input one hop before
   * @param last spectra of the last frame after their turns
   */
  find(now: readonly Spectrum[], before: readonly Spectrum[], last: readonly Spectrum[], isAtOnset: boolean): void {
    for (const plane of [this.#fitRe, this.#fitIm, this.#power, this.#powerBefore]) plane.fill(0)
    now.forEach((_, pair) => this.#gather(now[pair]!, before[pair]!, last[pair]!))
    const half = this.#size / 2
    const power = this.#power
    let [start, peak, valley] = [1, 1, 1]
    let hasPeak = false
    for (let bin = 1; bin < half; bin++) {
      if (this.#isPeak(bin)) {
        if (hasPeak) {
          this.#turnAlike(start, valley, peak)
          start = valley
        }
        hasPeak = true
        peak = bin
        valley = bin + 1
      } else if (power[bin]! < power[valley]!) valley = bin
    }
    this.#turnAlike(start, half, peak)
    if (isAtOnset) this.#keepOnsets()
  }

  apply({ re, im }: Spectrum): void {
    const size = this.#size
    const turnRe = this.#re
    const turnIm = this.#im
    for (let bin = 1; bin < size / 2; bin++) {
      const c = turnRe[bin]!
      const s = turnIm[bin]!
      const x = re[bin]!
      const y = im[bin]!
      re[bin] = x * c - y * s
      im[bin] = x * s + y * c
      const u = re[size - bin]!
      const v = im[size - bin]!
      re[size - bin] = u * c + v * s
      im[size - bin] = v * c - u * s
    }
  }

  #gather(now: Spectrum, before: Spectrum, last: Spectrum): void {
    const size = this.#size
    for (let bin = 1; bin < size / 2; bin++) {
      const mirrored = size - bin
      const a = before.re[bin]!
      const b = before.im[bin]!
      const c = before.re[mirrored]!
      const d = before.im[mirrored]!
      const e = last.re[bin]!
      const f = last.im[bin]!
      const g = last.re[mirrored]!
      const h = last.im[mirrored]!
      this.#fitRe[bin]! += e * a + f * b + g * c + h * d
      this.#fitIm[bin]! += f * a - e * b + g * d - h * c
      this.#powerBefore[bin]! += a * a + b * b + c * c + d * d
      this.#power[bin]! += now.re[bin]! ** 2 + now.im[bin]! ** 2 + now.re[mirrored]! ** 2 + now.im[mirrored]! ** 2
    }
  }

  #isPeak(bin: number): boolean {
    const power = this.#power
    const here = power[bin]!
    return (
      here > power[bin - 1]! &&
      here >= power[bin + 1]! &&
      (bin < 2 || here > power[bin - 2]!) &&
      (bin + 2 >= power.length || here >= power[bin + 2]!)
    )
  }

  #turnAlike(start: number, end: number, peak: number): void {
    let [re, im] = [0, 0]
    for (let bin = Math.max(start, peak - bodyOfPeak); bin < Math.min(end, peak + bodyOfPeak + 1); bin++) {
      re += this.#fitRe[bin]!
      im += this.#fitIm[bin]!
    }
    const length = Math.sqrt(re * re + im * im)
    // After silence the input's phase is as good as any.
    const isKnown = length > 1e-20
    this.#re.fill(isKnown ? re / length : 1, start, end)
    this.#im.fill(isKnown ? im / length : 0, start, end)
  }

  #keepOnsets(): void {
    for (let bin = 1; bin < this.#size / 2; bin++) {
      if (this.#power[bin]! <= grown * this.#powerBefore[bin]!) continue
      this.#re[bin] = 1
      this.#im[bin] = 0
    }
  }
}
