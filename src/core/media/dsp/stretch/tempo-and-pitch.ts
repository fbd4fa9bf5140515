import { Resampler } from '../resample.js'
import { TimeStretch, type TimeStretchOptions } from './time-stretch.js'

export interface Stretching {
  /** Speed relative to the input, 0.5 to 2: 1.25 is a quarter faster, at the same pitch. Default: 1. */
  tempo?: number
  /** Semitones by which the pitch is raised, -12 to 12, at the same tempo. Default: 0. */
  semitones?: number
}

/** Up to this many phases the resampler needs no interpolation. Their ratios are exact to a tenth of a cent. */
const mostPhases = 1024

/**
 * Changes the tempo and the pitch of parts that are heard together, block by block; n samples become `n / tempo`.
 * Runs on an audio thread, too.
 */
export class TempoAndPitch {
  readonly #stretch: TimeStretch
  readonly #resampler: Resampler | undefined
  /** Input samples for each sample that is stretched. */
  readonly #pitch: number

  constructor({ tempo = 1, semitones = 0, ...shape }: Stretching & Omit<TimeStretchOptions, 'ratio'>) {
    const { channelCount, partCount = 1 } = shape
    // Resampling raises the pitch and shortens the audio; stretching then restores the length.
    const [over, under] = nearestFraction(2 ** (semitones / 12))
    this.#pitch = over / under
    this.#resampler = over === under ? undefined : new Resampler(over, under, channelCount * partCount)
    this.#stretch = new TimeStretch({ ...shape, ratio: this.#pitch / tempo })
  }

  /** Samples per channel that each `pull` returns. */
  get hop(): number {
    return this.#stretch.hop
  }

  /** Position in the input, in samples, where the next `pull` begins; near onsets only to some milliseconds. */
  get position(): number {
    return this.#stretch.position * this.#pitch
  }

  /** Takes effect with the next frame. */
  setTempo(tempo: number): void {
    this.#stretch.setRatio(this.#pitch / tempo)
  }

  /** @param planes one for each channel of each part, all of the same length */
  push(planes: readonly Float32Array[]): void {
    if (!this.#resampler) this.#stretch.push(planes)
    else for (const { channels } of this.#resampler.push(planes)) this.#stretch.push(channels)
  }

  /** No more input follows. The caller cuts the output where it should end. */
  end(): void {
    for (const { channels } of this.#resampler?.end() ?? []) this.#stretch.push(channels)
    this.#stretch.end()
  }

  /** Returns the next `hop` samples as `TimeStretch` does. */
  pull(): readonly Float32Array[] | undefined {
    return this.#stretch.pull()
  }
}

/** The nearest fraction, by continued fractions. */
function nearestFraction(value: number): [number, number] {
  let [over, under, lastOver, lastUnder] = [Math.floor(value), 1, 1, 0]
  for (let rest = value - over; rest > 1e-9;) {
    const whole = Math.floor(1 / rest)
    rest = 1 / rest - whole
    const next = [whole * over + lastOver, whole * under + lastUnder] as const
    if (next[1] > mostPhases) break
    ;[lastOver, lastUnder, over, under] = [over, under, ...next]
  }
  return [over, under]
}
