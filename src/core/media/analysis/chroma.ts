/** Range of tones that indicate the key: from the lowest bass to where overtones outnumber notes. */
const lowestToneHertz = 41
const highestToneHertz = 1050
/** Below this, a tone is usually the root of the chord. */
const highestBassHertz = 143
/** Highest tone that indicates chords, and by what factor a peak must exceed the mean around it to be a tone. */
const highestChordHertz = 1500
const prominence = 1.5
/** The mean spans a fifth of the frequency on either side, and at least this many bins. */
const fewestBinsAround = 10
/** Exponents of each tone and of the sum of tones, so that quiet tones of a chord count beside loud ones. */
const [toneExponent, sumExponent] = [0.5, 0.8]
/** Steps per semitone in the search for the tuning. */
const tuningSteps = 20
/** Number of first frames with tones that determine the tuning (24 s). */
const tuningFrames = 256

/** Tones by pitch class, from C on, over the time of a piece. */
export interface Chroma {
  /** Frames of twelve shares that sum to 1, or are all zero. */
  all: Float32Array[]
  /** The parts of these shares that are in the bass. */
  bass: Float32Array[]
}

/** Tones that stand out from noise, in the treble and in the bass, frame by frame as in the chroma. */
export interface Harmony {
  treble: Float32Array[]
  bass: Float32Array[]
}

/** Strengths of tones by steps of a fraction of a semitone, from C on. */
interface Tones {
  all: Float32Array
  bass: Float32Array
  clearTreble: Float32Array
  clearBass: Float32Array
}

function noTones(): Tones {
  const zeros = () => new Float32Array(12 * tuningSteps)
  return { all: zeros(), bass: zeros(), clearTreble: zeros(), clearBass: zeros() }
}

/** Shared, because hours of silence may come before the tones that determine the tuning. */
const silence = noTones()

/**
 * Collects the tones of a piece relative to its tuning: keeps 192 bytes per frame, and temporarily the frames that
 * determine the tuning.
 */
export class ChromaGatherer {
  readonly #hertzPerBin: number
  readonly #chroma: Chroma = { all: [], bass: [] }
  readonly #harmony: Harmony = { treble: [], bass: [] }
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
    const isSilent = Object.values(tones).every((part: Float32Array) => part.every((value) => value === 0))
    this.#untuned.push(isSilent ? silence : tones)
    if (tones.all.some((value) => value > 0) && ++this.#withTones === tuningFrames) this.#tune()
  }

  /** @returns `tuningCents` is how far the audio's A lies above 440 Hz, -50 to 50 */
  finish(): { chroma: Chroma; harmony: Harmony; tuningCents: number } {
    const tuning = this.#tuning ?? this.#tune()
    return { chroma: this.#chroma, harmony: this.#harmony, tuningCents: Math.round(100 * tuning) }
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

  #keep({ all, bass, clearTreble, clearBass }: Tones, tuning: number): void {
    const sum = all.reduce((total, value) => total + value, 0)
    const shares = (tones: Float32Array) => classesOf(tones, tuning).map((value) => (sum > 0 ? value / sum : 0))
    this.#chroma.all.push(shares(all))
    this.#chroma.bass.push(shares(bass))
    this.#harmony.treble.push(classesOf(clearTreble, tuning).map((value) => value ** sumExponent))
    this.#harmony.bass.push(classesOf(clearBass, tuning).map((value) => value ** sumExponent))
  }

  /** The peaks of the spectrum: their magnitudes, and how far they stand out. */
  #tonesOf(spectrum: Float32Array): Tones {
    const tones = noTones()
    const last = Math.floor(highestChordHertz / this.#hertzPerBin)
    const magnitudes = Float32Array.from({ length: Math.ceil(last * 1.2) + fewestBinsAround }, (_, bin) =>
      Math.hypot(spectrum[2 * bin]!, spectrum[2 * bin + 1]!),
    )
    const meanAround = meansAround(magnitudes)
    for (let bin = Math.ceil(lowestToneHertz / this.#hertzPerBin); bin <= last; bin++) {
      const [left, middle, right] = [magnitudes[bin - 1]!, magnitudes[bin]!, magnitudes[bin + 1]!]
      if (middle < 1e-3 || middle < left || middle <= right) continue
      // The top of the parabola through the three logarithms.
      const [a, b, c] = [Math.log(left + 1e-9), Math.log(middle), Math.log(right + 1e-9)]
      const offset = (0.5 * (a - c)) / (a - 2 * b + c)
      const hertz = (bin + offset) * this.#hertzPerBin
      const semitones = 12 * Math.log2(hertz / 440) + 69
      const step = Math.floor((semitones + 120) * tuningSteps) % (12 * tuningSteps)
      const isBass = hertz < highestBassHertz
      if (hertz < highestToneHertz) tones.all[step]! += middle
      if (isBass) tones.bass[step]! += middle
      const clear = Math.max(0, middle - prominence * meanAround(bin)) ** toneExponent
      tones[isBass ? 'clearBass' : 'clearTreble'][step]! += clear
    }
    return tones
  }
}

/** Folds steps of a semitone to pitch classes. */
function classesOf(tones: Float32Array, tuning: number): Float32Array {
  const classes = new Float32Array(12)
  tones.forEach((value, step) => {
    const semitone = Math.round((step + 0.5) / tuningSteps - tuning)
    classes[(semitone + 12) % 12]! += value
  })
  return classes
}

function meansAround(magnitudes: Float32Array): (bin: number) => number {
  const sums = new Float64Array(magnitudes.length + 1)
  magnitudes.forEach((value, bin) => (sums[bin + 1] = sums[bin]! + value))
  return (bin) => {
    const reach = Math.max(fewestBinsAround, Math.round(bin / 5))
    const [from, to] = [Math.max(0, bin - reach), Math.min(magnitudes.length, bin + reach + 1)]
    return (sums[to]! - sums[from]!) / (to - from)
  }
}
