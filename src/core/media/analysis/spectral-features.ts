import type { AudioStream } from '../dsp/audio-stream.js'
import { periodicHann, RealFft } from '../dsp/fft.js'
import { type Chroma, ChromaGatherer, type Harmony } from './chroma.js'

/** Sample rate of the mono audio that is analysed. */
export const analysisRate = 22_050
const hop = 256
/** Frames of onsets per second. */
export const framesPerSecond = analysisRate / hop
const onsetWindow = 1024
const chromaWindow = 8192
const chromaHop = 2048
export const framesPerChroma = chromaHop / hop

const bandsPerOctave = 4
/** Number of bands in a broad band, for timbre: an octave. */
const bandsPerBroadBand = 4
const lowestBandHertz = 40
const lowBandHertz = 160
const highestBandHertz = 9000

export interface SpectralFeatures {
  /** Increase of the spectrum from frame to frame: in all bands, and in those below 160 Hz. */
  onsets: Float32Array
  lowOnsets: Float32Array
  /** The same in all bands, but loud bands count for more than quiet ones. */
  accents: Float32Array
  /** Root mean square of each frame. */
  levels: Float32Array
  chroma: Chroma
  harmony: Harmony
  /** Levels in broad bands, on a logarithmic scale, in step with the chroma. */
  timbre: Float32Array[]
  /** How far the audio's A lies above 440 Hz, -50 to 50. */
  tuningCents: number
  sampleCount: number
}

/** Reads a mono stream at the analysis rate; keeps about 17 kB per second. */
export async function spectralFeatures(stream: AudioStream, signal?: AbortSignal): Promise<SpectralFeatures> {
  const fft = await RealFft.create(onsetWindow)
  const toneFft = await RealFft.create(chromaWindow)
  const flux = new BandFlux()
  const [onsets, lowOnsets, accents, levels]: number[][] = [[], [], [], []]
  const gatherer = new ChromaGatherer(analysisRate / chromaWindow)
  const timbre: Float32Array[] = []
  let timbreSum = new Float32Array(flux.broadBandCount)
  const windows = new Windows()
  const [window, toneWindow] = [periodicHann(onsetWindow), periodicHann(chromaWindow)]
  let sampleCount = 0

  const frame = (history: Float32Array) => {
    let squares = 0
    for (let i = chromaWindow - hop; i < chromaWindow; i++) squares += history[i]! ** 2
    levels!.push(Math.sqrt(squares / hop))
    const time = fft.time()
    for (let i = 0; i < onsetWindow; i++) time[i] = history[chromaWindow - onsetWindow + i]! * window[i]!
    fft.forward(1)
    const growth = flux.next(fft.spectrum())
    onsets!.push(growth.all)
    lowOnsets!.push(growth.low)
    accents!.push(growth.accent)
    growth.broadBands.forEach((level, i) => (timbreSum[i]! += level / framesPerChroma))
    if (onsets!.length % framesPerChroma > 0) return
    const toneTime = toneFft.time()
    for (let i = 0; i < chromaWindow; i++) toneTime[i] = history[i]! * toneWindow[i]!
    toneFft.forward(1)
    gatherer.add(toneFft.spectrum())
    timbre.push(timbreSum)
    timbreSum = new Float32Array(flux.broadBandCount)
  }

  try {
    for await (const { channels } of stream.blocks) {
      signal?.throwIfAborted()
      sampleCount += channels[0]!.length
      windows.add(channels[0]!, frame)
    }
  } finally {
    fft.close()
    toneFft.close()
  }
  return {
    onsets: Float32Array.from(onsets!),
    lowOnsets: Float32Array.from(lowOnsets!),
    accents: Float32Array.from(accents!),
    levels: Float32Array.from(levels!),
    timbre,
    ...gatherer.finish(),
    sampleCount,
  }
}

/** Window of the latest samples, which moves hop by hop. */
class Windows {
  readonly #history = new Float32Array(chromaWindow)
  #filled = 0

  /** Calls `onHop` after each hop that the samples complete, always with the same array. */
  add(samples: Float32Array, onHop: (latest: Float32Array) => void): void {
    for (let from = 0; from < samples.length;) {
      const count = Math.min(hop - this.#filled, samples.length - from)
      this.#history.copyWithin(0, count)
      this.#history.set(samples.subarray(from, from + count), chromaWindow - count)
      from += count
      this.#filled += count
      if (this.#filled < hop) continue
      this.#filled = 0
      onHop(this.#history)
    }
  }
}

/** The time of a frame of chroma, in seconds: the middle of its window. */
export function chromaSeconds(frame: number): number {
  return ((frame + 1) * chromaHop - chromaWindow / 2) / analysisRate
}

/** The time of a frame of onsets, in seconds: the middle of its window. */
export function frameSeconds(frame: number): number {
  return Math.max(0, ((frame + 1) * hop - onsetWindow / 2) / analysisRate)
}

/**
 * Spectral flux of bands on a logarithmic scale (S. Dixon, Onset Detection Revisited, DAFx 2006), which weighs loud and
 * quiet parts alike.
 */
class BandFlux {
  readonly #edges: number[] = []
  readonly #lowBands: number
  #before: Float32Array | undefined
  #amplitudes: Float32Array | undefined

  constructor() {
    for (let hertz = lowestBandHertz; hertz < highestBandHertz; hertz *= 2 ** (1 / bandsPerOctave)) {
      const bin = Math.round((hertz * onsetWindow) / analysisRate)
      if (bin > (this.#edges.at(-1) ?? 0)) this.#edges.push(bin)
    }
    this.#lowBands = this.#edges.filter((bin) => (bin * analysisRate) / onsetWindow < lowBandHertz).length
  }

  get broadBandCount(): number {
    return Math.ceil((this.#edges.length - 1) / bandsPerBroadBand)
  }

  next(spectrum: Float32Array): { all: number; low: number; accent: number; broadBands: Float32Array } {
    const bands = new Float32Array(this.#edges.length - 1)
    const amplitudes = new Float32Array(bands.length)
    for (let band = 0; band < bands.length; band++) {
      let power = 0
      for (let bin = this.#edges[band]!; bin < this.#edges[band + 1]!; bin++)
        power += spectrum[2 * bin]! ** 2 + spectrum[2 * bin + 1]! ** 2
      amplitudes[band] = Math.sqrt(power / onsetWindow)
      bands[band] = Math.log1p(100 * amplitudes[band]!)
    }
    let [all, low, accent] = [0, 0, 0]
    for (let band = 0; band < bands.length; band++) {
      const growth = Math.max(0, bands[band]! - (this.#before?.[band] ?? bands[band]!))
      all += growth
      if (band < this.#lowBands) low += growth
      accent += Math.max(0, amplitudes[band]! - (this.#amplitudes?.[band] ?? amplitudes[band]!))
    }
    this.#before = bands
    this.#amplitudes = amplitudes
    const broadBands = new Float32Array(this.broadBandCount)
    bands.forEach((level, band) => (broadBands[Math.floor(band / bandsPerBroadBand)]! += level / bandsPerBroadBand))
    return { all, low, accent, broadBands }
  }
}
