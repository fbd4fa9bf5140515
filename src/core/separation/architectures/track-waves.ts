import type { Segment, SegmentGeometry } from '../dsp/segment.js'
import { Joints } from './joints.js'
import type { TrackStatistics } from './architecture.js'
import type { Estimate, Stems } from '../stems.js'
import type { StemSources } from './stem-sources.js'

/** Without statistics nothing is normalised. */
const none: TrackStatistics = { mean: 0, standardDeviation: 1 }

/** So that silence is not divided by zero. */
const leastDeviation = 1e-8

/**
 * Cuts a track into waves of a fixed length, normalised by the statistics of the whole track, and joins what networks make of
 * them. The last wave, and that of a track shorter than a wave, has what it lacks from both sides: real audio, and silence
 * beyond the track.
 */
export class TrackWaves {
  readonly length: number
  readonly geometry: SegmentGeometry
  readonly #joints: Joints

  /** @param overlap share of a wave that the next one covers as well */
  constructor(length: number, overlap: number) {
    const step = Math.max(1, Math.floor((1 - overlap) * length))
    const before = Math.ceil(length / 2)
    this.length = length
    this.#joints = new Joints({ first: 0, span: length, step })
    this.geometry = { step, before, length: before + length, given: this.#joints.given }
  }

  /** Writes the normalised wave of a segment's channel. */
  normalise(segment: Segment, channel: number, statistics: TrackStatistics | undefined, wave: Float32Array): void {
    const { mean, standardDeviation } = statistics ?? none
    const samples = segment.planes[channel]
    const from = this.#firstSample(segment)
    const first = Math.max(0, -from)
    const offset = from - segment.start
    const last = Math.min(this.length, samples.length - offset)
    const gain = 1 / (standardDeviation + leastDeviation)
    wave.fill(0, 0, first).fill(0, last)
    for (let i = first; i < last; i++) wave[i] = (samples[i + offset] - mean) * gain
  }

  /**
   * @param stems planes of whole waves, overwritten with what they are without the normalisation
   * @param sources the network's stems that each is the sum of
   */
  estimate(segment: Segment, stems: Stems, statistics: TrackStatistics | undefined, sources: StemSources): Estimate {
    const { mean, standardDeviation } = statistics ?? none
    const { start, end } = this.#joints.range(segment)
    const offset = start - this.#firstSample(segment)
    const gain = standardDeviation + leastDeviation
    const planes: Stems = {}
    for (const [stem, parts] of sources) {
      planes[stem] = stems[stem]?.map((wave) => {
        const plane = wave.subarray(offset, offset + end - start)
        for (let i = 0; i < plane.length; i++) plane[i] = plane[i] * gain + parts.length * mean
        return plane
      })
    }
    return this.#joints.estimate(segment, planes)
  }

  #firstSample(segment: Segment): number {
    const { start, end } = this.#joints.range(segment)
    return start - Math.floor((this.length - (end - start)) / 2)
  }
}
