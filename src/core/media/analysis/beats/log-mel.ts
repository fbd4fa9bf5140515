import { periodicHann, RealFft } from '../../dsp/fft.js'
import { SampleWindow } from '../../dsp/sample-window.js'

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
  readonly #audio = new SampleWindow(1, 2 * size)
  #frames = 0

  private constructor(fft: RealFft) {
    this.#fft = fft
  }

  static async create(): Promise<LogMel> {
    return new LogMel(await RealFft.create(size))
  }

  /** @returns the frames that are now complete */
  add(samples: Float32Array): Float32Array[] {
    // Keeps the samples that a frame at the very end would reflect.
    this.#audio.dropBefore(this.#frames * hop - size)
    this.#audio.append([samples])
    return this.#framesWhile((centre) => centre + size / 2 < this.#audio.end)
  }

  /** Returns the last frames, or none if the audio is too short to be reflected. */
  finish(): Float32Array[] {
    const { end } = this.#audio
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
    const { start, end, planes } = this.#audio
    const time = this.#fft.time()
    for (let i = 0; i < size; i++) {
      const position = Math.abs(centre - size / 2 + i)
      time[i] = this.#window[i]! * planes[0]![(position < end ? position : 2 * (end - 1) - position) - start]!
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
