import { periodicHann, RealFft } from '../../dsp/fft.js'

/** Sample rate of the mono audio that Beat This! was trained on. */
export const beatSampleRate = 22_050
const hop = 441
export const beatFramesPerSecond = beatSampleRate / hop
const size = 1024
export const melBands = 128
const [lowestHertz, highestHertz] = [30, 11_000]
const logFactor = 1000

/**
 * The log-mel spectrogram of Beat This! (F. Foscarin, J. Schlüter and G. Widmer, ISMIR 2024): magnitudes of an STFT
 * with frames that are centred on multiples of 441 samples and reflected at both ends, divided by the root of its size;
 * 128 triangles on the mel scale of Slaney's Auditory Toolbox, not normalized; `log(1 + 1000 x)`.
 */
export class LogMel {
  readonly #fft: RealFft
  readonly #triangles = melTriangles()
  readonly #window = periodicHann(size)
  #samples = new Float32Array(0)
  /** Position in the audio of the first sample held. */
  #from = 0
  #frames = 0

  private constructor(fft: RealFft) {
    this.#fft = fft
  }

  static async create(): Promise<LogMel> {
    return new LogMel(await RealFft.create(size))
  }

  /** @returns the frames that are now complete */
  add(samples: Float32Array): Float32Array[] {
    const end = this.#from + this.#samples.length
    // Keeps the samples that a frame at the very end would reflect.
    const from = Math.max(this.#from, Math.min(end, this.#frames * hop - size))
    const joined = new Float32Array(end - from + samples.length)
    joined.set(this.#samples.subarray(from - this.#from))
    joined.set(samples, end - from)
    this.#samples = joined
    this.#from = from
    return this.#framesWhile((centre) => centre + size / 2 < from + joined.length)
  }

  /** Returns the last frames, or none if the audio is too short to be reflected. */
  finish(): Float32Array[] {
    const end = this.#from + this.#samples.length
    return end > size / 2 ? this.#framesWhile((centre) => centre <= end) : []
  }

  close(): void {
    this.#fft.close()
  }

  #framesWhile(isComplete: (centre: number) => boolean): Float32Array[] {
    const frames: Float32Array[] = []
    for (; isComplete(this.#frames * hop); this.#frames++) frames.push(this.#frameAt(this.#frames * hop))
    return frames
  }

  #frameAt(centre: number): Float32Array {
    const last = this.#from + this.#samples.length - 1
    const time = this.#fft.time()
    for (let i = 0; i < size; i++) {
      const position = Math.abs(centre - size / 2 + i)
      time[i] = this.#window[i]! * this.#samples[(position > last ? 2 * last - position : position) - this.#from]!
    }
    this.#fft.forward(1)
    const spectrum = this.#fft.spectrum()
    return Float32Array.from(this.#triangles, ({ first, weights }) => {
      let sum = 0
      for (const [i, weight] of weights.entries())
        sum += weight * Math.hypot(spectrum[2 * (first + i)]!, spectrum[2 * (first + i) + 1]!)
      return Math.log1p((logFactor * sum) / Math.sqrt(size))
    })
  }
}

/** Linear up to 1 kHz, logarithmic above. */
const [linearHertz, linearMels, octaves] = [200 / 3, 15, Math.log(6.4) / 27]

function melOf(hertz: number): number {
  return hertz < 1000 ? hertz / linearHertz : linearMels + Math.log(hertz / 1000) / octaves
}

function hertzOf(mel: number): number {
  return mel < linearMels ? mel * linearHertz : 1000 * Math.exp(octaves * (mel - linearMels))
}

function melTriangles(): { first: number; weights: number[] }[] {
  const [low, high] = [melOf(lowestHertz), melOf(highestHertz)]
  const edges = Array.from({ length: melBands + 2 }, (_, i) => hertzOf(low + ((high - low) * i) / (melBands + 1)))
  const hertzPerBin = beatSampleRate / size
  return Array.from({ length: melBands }, (_, band) => {
    const [left, middle, right] = edges.slice(band, band + 3)
    const first = Math.ceil(left! / hertzPerBin)
    const count = Math.max(0, Math.floor(right! / hertzPerBin) - first + 1)
    const weights = Array.from({ length: count }, (_, i) => {
      const hertz = (first + i) * hertzPerBin
      return Math.min((hertz - left!) / (middle! - left!), (right! - hertz) / (right! - middle!))
    })
    return { first, weights }
  })
}
