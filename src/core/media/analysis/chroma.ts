/** Range of tones that indicate the key: from the lowest bass to where overtones outnumber notes. */
const lowestToneHertz = 41
const highestToneHertz = 1050
/** Below this, a tone is usually the root of the chord. */
const highestBassHertz = 143
/** Steps per semitone in the search for the tuning. */
const tuningSteps = 20
/** The tuning is measured on this many first frames with tones (24 s). */
const tuningFrames = 256

/** Tones by pitch class from C on, as they follow each other in a piece. */
export interface Chroma {
  /** Frames of twelve that sum to 1, or are all zero. */
  all: Float32Array[]
  /** The shares of them that are in the bass. */
  bass: Float32Array[]
}

interface Tones {
  all: Float32Array
  bass: Float32Array
}

/**
 * Collects the tones of a piece relative to its tuning: keeps 96 bytes per frame, and temporarily the frames that
 * determine the tuning.
 */
export class ChromaGatherer {
  readonly #hertzPerBin: number
  readonly #chroma: Chroma = { all: [], bass: [] }
  #untuned: Tones[] = []
  #withTones = 0
  /** The vector sum of the tones, with their deviation from equal temperament as the angle. */
  #real = 0
  #imaginary = 0
  #tuning: number | undefined

  constructor(hertzPerBin: number) {
    this.#hertzPerBin = hertzPerBin
  }

  /** @param spectrum real and imaginary parts, alternating */
  add(spectrum: Float32Array): void {
    const tones = this.#tonesOf(spectrum)
    if (this.#tuning !== undefined) return this.#keep(tones, this.#tuning)
    this.#untuned.push(tones)
    if (tones.all.some((value) => value > 0) && ++this.#withTones === tuningFrames) this.#tune()
  }

  /** @returns `tuningCents` is how far the audio's A lies above 440 Hz, -50 to 50 */
  finish(): { chroma: Chroma; tuningCents: number } {
    const tuning = this.#tuning ?? this.#tune()
    return { chroma: this.#chroma, tuningCents: Math.round(100 * tuning) }
  }

  #tune(): number {
    for (const { all } of this.#untuned) {
      all.forEach((value, step) => {
        const angle = (2 * Math.PI * ((step % tuningSteps) + 0.5)) / tuningSteps
        this.#real += value * Math.cos(angle)
        this.#imaginary += value * Math.sin(angle)
      })
    }
    const tuning = Math.atan2(this.#imaginary, this.#real) / (2 * Math.PI)
    this.#tuning = tuning
    for (const tones of this.#untuned) this.#keep(tones, tuning)
    this.#untuned = []
    return tuning
  }

  #keep({ all, bass }: Tones, tuning: number): void {
    const sum = all.reduce((total, value) => total + value, 0)
    for (const [tones, frames] of [
      [all, this.#chroma.all],
      [bass, this.#chroma.bass],
    ] as const) {
      const classes = new Float32Array(12)
      if (sum > 0)
        tones.forEach((value, step) => {
          const semitone = Math.round((step + 0.5) / tuningSteps - tuning)
          classes[(semitone + 12) % 12]! += value / sum
        })
      frames.push(classes)
    }
  }

  /** Magnitudes of the spectrum's peaks, by steps of a semitone from C on. */
  #tonesOf(spectrum: Float32Array): Tones {
    const tones = { all: new Float32Array(12 * tuningSteps), bass: new Float32Array(12 * tuningSteps) }
    const magnitude = (bin: number) => Math.hypot(spectrum[2 * bin]!, spectrum[2 * bin + 1]!)
    const last = Math.floor(highestToneHertz / this.#hertzPerBin)
    for (let bin = Math.ceil(lowestToneHertz / this.#hertzPerBin); bin <= last; bin++) {
      const [left, middle, right] = [magnitude(bin - 1), magnitude(bin), magnitude(bin + 1)]
      if (middle < 1e-3 || middle < left || middle <= right) continue
      // The top of the parabola through the three logarithms.
      const [a, b, c] = [Math.log(left + 1e-9), Math.log(middle), Math.log(right + 1e-9)]
      const offset = (0.5 * (a - c)) / (a - 2 * b + c)
      const hertz = (bin + offset) * this.#hertzPerBin
      const semitones = 12 * Math.log2(hertz / 440) + 69
      const step = Math.floor((semitones + 120) * tuningSteps) % (12 * tuningSteps)
      tones.all[step]! += middle
      if (hertz < highestBassHertz) tones.bass[step]! += middle
    }
    return tones
  }
}
