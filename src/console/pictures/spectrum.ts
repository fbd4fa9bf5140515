import { ComplexFft } from '../../core/media/dsp/stretch/complex-fft.js'
import type { PcmSource } from '../sources/pcm-source.js'
import { highestHertz, lowestHertz } from './frequency-axis.js'
import { sampleAt as at } from '../sources/sample-at.js'

const size = 2048
const floorDecibels = -96
const parallelReads = 2
const mostFramesPerRead = 2 ** 18
const growingMs = 500

const fft = new ComplexFft(size)
/** A Hann window, scaled so that a full-scale sine measures 0 dB. */
const hann = Float64Array.from({ length: size }, (_, n) => ((1 - Math.cos((2 * Math.PI * n) / size)) * 2) / size)

/**
 * Computes the spectrum of a track at evenly spaced moments, as samples arrive: 0..1 for each of `rows` bands from 40
 * Hz to 16 kHz, spaced by octaves, lowest first. Reads are bounded, and of long tracks only the moments are read.
 */
export async function readSpectrum(
  source: PcmSource,
  {
    columns,
    rows,
    signal,
    onColumn,
  }: { columns: number; rows: number; signal: AbortSignal; onColumn(column: number, levels: Float32Array): void },
): Promise<void> {
  const frames = Math.max(source.frames, source.promisedFrames ?? 0)
  const starts = Array.from({ length: columns }, (_, column) => {
    const middle = Math.round(((column + 0.5) / columns) * frames)
    return Math.max(0, Math.min(frames - size, middle - size / 2))
  })
  const columnsPerRead = Math.max(1, Math.floor((mostFramesPerRead * columns) / frames))
  let next = 0
  const worker = async () => {
    while (next < columns) {
      const [first, end] = [next, Math.min(columns, next + columnsPerRead)]
      next = end
      const start = at(starts, first)
      const until = at(starts, end - 1) + size
      while (source.isGrowing && source.frames < until) {
        await new Promise((resolve) => setTimeout(resolve, growingMs))
        signal.throwIfAborted()
      }
      const planes = await source.read(start, until - start, signal)
      signal.throwIfAborted()
      for (let column = first; column < end; column++) {
        const from = at(starts, column) - start
        const part = planes.map((plane) => plane.subarray(from, from + size))
        onColumn(column, bands(part, rows, source.sampleRate))
      }
    }
  }
  await Promise.all(Array.from({ length: parallelReads }, worker))
}

export function bands(planes: readonly Float32Array[], rows: number, sampleRate: number): Float32Array {
  const real = new Float64Array(size)
  const imaginary = new Float64Array(size)
  for (const plane of planes)
    for (let n = 0; n < Math.min(size, plane.length); n++)
      real[n] = at(real, n) + (at(plane, n) * at(hann, n)) / planes.length
  fft.transform(real, imaginary)
  const levels = new Float32Array(rows)
  const bin = (row: number) => (lowestHertz * (highestHertz / lowestHertz) ** (row / rows) * size) / sampleRate
  for (let row = 0; row < rows; row++) {
    const from = Math.max(1, Math.floor(bin(row)))
    const to = Math.min(size / 2, Math.max(from + 1, Math.ceil(bin(row + 1))))
    let power = 0
    for (let k = from; k < to; k++) power = Math.max(power, at(real, k) ** 2 + at(imaginary, k) ** 2)
    levels[row] = Math.max(0, 1 - (10 * Math.log10(power + 1e-12)) / floorDecibels)
  }
  return levels
}
