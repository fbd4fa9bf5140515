import type { AudioStream } from '../../separation/dsp/audio-stream.js'
import { RealFft } from '../../separation/dsp/fft.js'

/** The features are of mono audio at this rate. */
export const analysisRate = 22_050
const hop = 256
/** Features of onsets each second. */
export const framesPerSecond = analysisRate / hop
const onsetWindow = 1024
const chromaWindow = 8192
const chromaHop = 2048
/** Frames of onsets for each of the chroma. */
export const framesPerChroma = chromaHop / hop

const bandsPerOctave = 4
const lowestBandHertz = 40
const lowBandHertz = 160
const highestBandHertz = 9000
/** Of tones that tell the key: from the lowest bass to where overtones are more than notes. */
const lowestToneHertz = 41
const highestToneHertz = 1050
/** Steps of a semitone in which the tuning is looked for. */
const tuningSteps = 20

export interface SpectralFeatures {
  /** Growth of the spectrum from frame to frame: of all bands, and of those below 160 Hz. */
  onsets: Float32Array
  lowOnsets: Float32Array
  /** Root mean square of each frame. */
  levels: Float32Array
  /** Energy by `tuningSteps` of a semitone and pitch class from C on, for each chroma frame. */
  tones: Float32Array[]
  sampleCount: number
}

/** Reads a mono stream at the analysis rate; what is kept is some 2 kB for each second. */
export async function spectralFeatures(stream: AudioStream, signal?: AbortSignal): Promise<SpectralFeatures> {
  const fft = await RealFft.create(onsetWindow)
  const toneFft = await RealFft.create(chromaWindow)
  const flux = new BandFlux()
  const [onsets, lowOnsets, levels]: number[][] = [[], [], []]
  const tones: Float32Array[] = []
  const history = new Float32Array(chromaWindow)
  const [window, toneWindow] = [hann(onsetWindow), hann(chromaWindow)]
  let sampleCount = 0

  const frame = () => {
    let squares = 0
    for (let i = chromaWindow - hop; i < chromaWindow; i++) squares += history[i] ** 2
    levels.push(Math.sqrt(squares / hop))
    const time = fft.time()
    for (let i = 0; i < onsetWindow; i++) time[i] = history[chromaWindow - onsetWindow + i] * window[i]
    fft.forward(1)
    const growth = flux.next(fft.spectrum())
    onsets.push(growth.all)
    lowOnsets.push(growth.low)
    if (onsets.length % framesPerChroma > 0) return
    const toneTime = toneFft.time()
    for (let i = 0; i < chromaWindow; i++) toneTime[i] = history[i] * toneWindow[i]
    toneFft.forward(1)
    tones.push(tonesOf(toneFft.spectrum()))
  }

  try {
    let filled = 0
    for await (const { channels } of stream.blocks) {
      signal?.throwIfAborted()
      const [plane] = channels
      sampleCount += plane.length
      for (let from = 0; from < plane.length;) {
        const count = Math.min(hop - filled, plane.length - from)
        history.copyWithin(0, count)
        history.set(plane.subarray(from, from + count), chromaWindow - count)
        from += count
        filled += count
        if (filled < hop) continue
        filled = 0
        frame()
      }
    }
  } finally {
    fft.close()
    toneFft.close()
  }
  return {
    onsets: Float32Array.from(onsets),
    lowOnsets: Float32Array.from(lowOnsets),
    levels: Float32Array.from(levels),
    tones,
    sampleCount,
  }
}

/** The time in seconds of what a frame of onsets shows: the middle of its window. */
export function frameSeconds(frame: number): number {
  return Math.max(0, ((frame + 1) * hop - onsetWindow / 2) / analysisRate)
}

/** Spectral flux of bands on a logarithmic scale (S. Dixon, Onset Detection Revisited, DAFx 2006), which weighs loud and quiet parts alike. */
class BandFlux {
  readonly #edges: number[] = []
  readonly #lowBands: number
  #before: Float32Array | undefined

  constructor() {
    for (let hertz = lowestBandHertz; hertz < highestBandHertz; hertz *= 2 ** (1 / bandsPerOctave)) {
      const bin = Math.round((hertz * onsetWindow) / analysisRate)
      if (bin > (this.#edges.at(-1) ?? 0)) this.#edges.push(bin)
    }
    this.#lowBands = this.#edges.filter((bin) => (bin * analysisRate) / onsetWindow < lowBandHertz).length
  }

  next(spectrum: Float32Array): { all: number; low: number } {
    const bands = new Float32Array(this.#edges.length - 1)
    for (let band = 0; band < bands.length; band++) {
      let power = 0
      for (let bin = this.#edges[band]; bin < this.#edges[band + 1]; bin++)
        power += spectrum[2 * bin] ** 2 + spectrum[2 * bin + 1] ** 2
      bands[band] = Math.log1p(100 * Math.sqrt(power / onsetWindow))
    }
    let [all, low] = [0, 0]
    for (let band = 0; band < bands.length; band++) {
      const growth = Math.max(0, bands[band] - (this.#before?.[band] ?? bands[band]))
      all += growth
      if (band < this.#lowBands) low += growth
    }
    this.#before = bands
    return { all, low }
  }
}

/** Magnitudes of the spectrum's peaks, by pitch class and by how far they lie from equal temperament at 440 Hz. */
function tonesOf(spectrum: Float32Array): Float32Array {
  const tones = new Float32Array(12 * tuningSteps)
  const magnitude = (bin: number) => Math.hypot(spectrum[2 * bin], spectrum[2 * bin + 1])
  const first = Math.ceil((lowestToneHertz * chromaWindow) / analysisRate)
  const last = Math.floor((highestToneHertz * chromaWindow) / analysisRate)
  for (let bin = first; bin <= last; bin++) {
    const [left, middle, right] = [magnitude(bin - 1), magnitude(bin), magnitude(bin + 1)]
    if (middle < 1e-3 || middle < left || middle <= right) continue
    // The top of the parabola through the three logarithms.
    const [a, b, c] = [Math.log(left + 1e-9), Math.log(middle), Math.log(right + 1e-9)]
    const offset = (0.5 * (a - c)) / (a - 2 * b + c)
    const hertz = ((bin + offset) * analysisRate) / chromaWindow
    const semitones = 12 * Math.log2(hertz / 440) + 69
    const step = Math.floor((semitones + 120) * tuningSteps) % (12 * tuningSteps)
    tones[step] += middle
  }
  return tones
}

/**
 * Folds tones into twelve pitch classes from C on, tuned to the audio: each frame sums to 1, or is all zero.
 *
 * @returns `tuningCents` is how far the audio's A lies above 440 Hz, -50 to 50
 */
export function tunedChroma(tones: readonly Float32Array[]): { chroma: Float32Array[]; tuningCents: number } {
  // The circular mean of the distances from equal temperament.
  let [real, imaginary] = [0, 0]
  for (const frame of tones) {
    frame.forEach((value, step) => {
      const angle = (2 * Math.PI * ((step % tuningSteps) + 0.5)) / tuningSteps
      real += value * Math.cos(angle)
      imaginary += value * Math.sin(angle)
    })
  }
  const tuning = Math.atan2(imaginary, real) / (2 * Math.PI)
  const chroma = tones.map((frame) => {
    const classes = new Float32Array(12)
    frame.forEach((value, step) => {
      const semitone = Math.round((step + 0.5) / tuningSteps - tuning)
      classes[(semitone + 12) % 12] += value
    })
    const sum = classes.reduce((total, value) => total + value, 0)
    return sum > 0 ? classes.map((value) => value / sum) : classes
  })
  return { chroma, tuningCents: Math.round(100 * tuning) }
}

function hann(size: number): Float32Array {
  return Float32Array.from({ length: size }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / size))
}
