import type { Speaker } from '../dsp/audio-stream.js'
import { GatedLoudness, lufs } from './gated-loudness.js'
import { KWeighting } from './k-weighting.js'
import { CourseBuilder, type LoudnessCourse } from './loudness-course.js'
import { TruePeak } from './true-peak.js'

/** The standards' measures of a whole programme. Levels are -Infinity if no audio counts. */
export interface Loudness {
  /** Integrated loudness in LUFS; -Infinity for silence, and for audio shorter than 400 ms. */
  integrated: number
  /** Blocks quieter than this, in LUFS, do not count. */
  gate: number
  /** Loudness range in LU; 0 for audio shorter than 3 s. */
  range: number
  /** Lower and upper bound of the range, in LUFS. */
  rangeLow: number
  rangeHigh: number
  /** The loudest 400 ms and the loudest 3 s, in LUFS. */
  maxMomentary: number
  maxShortTerm: number
  /** dBTP, over all channels. */
  truePeak: number
  /** dBFS, over all channels: the highest sample. */
  samplePeak: number
  /** Loudness every 100 ms, or less often for long audio. */
  course: LoudnessCourse
}

/** Windows move by 10 ms, so that the loudest is not missed; gated blocks start every 100 ms. */
const stepsPerSecond = 100
const blockSteps = 10
const momentarySteps = 40
const shortTermSteps = 300
const integratedGateLu = -10
const rangeGateLu = -20

/**
 * Measures loudness according to ITU-R BS.1770-5 (integrated, true peak), EBU Tech 3341 (momentary, short-term) and EBU
 * Tech 3342 (range). Memory does not grow with the audio.
 */
export class LoudnessMeter {
  readonly #sampleRate: number
  readonly #channels: { weight: number; filter: KWeighting; peak: TruePeak }[]
  /** Weighted energy of each of the last steps, by the number of the step. */
  readonly #steps = new Float64Array(shortTermSteps)
  readonly #blocks = new GatedLoudness()
  readonly #shortTerms = new GatedLoudness()
  readonly #course = new CourseBuilder()
  #stepCount = 0
  #stepEnergy = 0
  #sampleCount = 0
  #maxMomentary = 0
  #maxShortTerm = 0

  /** @param speakers of the channels, in their order */
  constructor(sampleRate: number, speakers: readonly Speaker[]) {
    this.#sampleRate = sampleRate
    this.#channels = channelWeights(speakers).map((weight) => ({
      weight,
      filter: new KWeighting(sampleRate),
      peak: new TruePeak(sampleRate),
    }))
  }

  /** @param planes one per channel, all of the same length */
  add(planes: readonly Float32Array[]): void {
    const { length } = planes[0]!
    for (const [channel, { peak }] of this.#channels.entries()) peak.add(planes[channel]!)
    for (let from = 0; from < length;) {
      const to = Math.min(length, from + this.#stepStart(this.#stepCount + 1) - this.#sampleCount)
      for (const [channel, { weight, filter }] of this.#channels.entries())
        if (weight > 0) this.#stepEnergy += weight * filter.energy(planes[channel]!, from, to)
      this.#sampleCount += to - from
      if (this.#sampleCount === this.#stepStart(this.#stepCount + 1)) this.#endStep()
      from = to
    }
  }

  finish(): Loudness {
    const { loudness, gate } = this.#blocks.mean(integratedGateLu)
    const [rangeLow, rangeHigh] = this.#shortTerms.percentiles(rangeGateLu, [0.1, 0.95]) as [number, number]
    return {
      integrated: loudness,
      gate,
      range: rangeHigh > rangeLow ? rangeHigh - rangeLow : 0,
      rangeLow,
      rangeHigh,
      maxMomentary: lufs(this.#maxMomentary),
      maxShortTerm: lufs(this.#maxShortTerm),
      truePeak: decibels(Math.max(...this.#channels.map(({ peak }) => peak.finish()))),
      samplePeak: decibels(Math.max(...this.#channels.map(({ peak }) => peak.highest))),
      course: this.#course.finish(blockSteps / stepsPerSecond),
    }
  }

  #endStep(): void {
    this.#steps[this.#stepCount % shortTermSteps] = this.#stepEnergy
    this.#stepEnergy = 0
    this.#stepCount++
    const momentary = this.#windowEnergy(momentarySteps)
    const shortTerm = this.#windowEnergy(shortTermSteps)
    this.#maxMomentary = Math.max(this.#maxMomentary, momentary ?? 0)
    this.#maxShortTerm = Math.max(this.#maxShortTerm, shortTerm ?? 0)
    if (this.#stepCount % blockSteps > 0) return
    if (momentary !== undefined) this.#blocks.add(momentary)
    if (shortTerm !== undefined) this.#shortTerms.add(shortTerm)
    this.#course.add(momentary === undefined ? NaN : lufs(momentary), shortTerm === undefined ? NaN : lufs(shortTerm))
  }

  /** Weighted mean square of the last steps; undefined if there are too few. */
  #windowEnergy(steps: number): number | undefined {
    if (this.#stepCount < steps) return undefined
    let sum = 0
    for (let step = this.#stepCount - steps; step < this.#stepCount; step++) sum += this.#steps[step % shortTermSteps]!
    return sum / (this.#stepStart(this.#stepCount) - this.#stepStart(this.#stepCount - steps))
  }

  /** Number of the first sample of a step, for rates that 10 ms do not divide. */
  #stepStart(step: number): number {
    return Math.round((step * this.#sampleRate) / stepsPerSecond)
  }
}

/**
 * BS.1770-5, annex 1, table 3: 1.41 for loudspeakers at the sides, 1 for those at the front and behind, none for the
 * LFE channel. The surround pair of 5.1 counts as at the sides; of two pairs, the first is the one behind.
 */
function channelWeights(speakers: readonly Speaker[]): number[] {
  const count = (speaker: Speaker) => speakers.filter((each) => each === speaker).length
  return speakers.map((speaker, channel) => {
    if (speaker === 'lfe') return 0
    if (speaker !== 'surroundLeft' && speaker !== 'surroundRight') return 1
    const isBehind = count(speaker) > 1 && speakers.indexOf(speaker) === channel
    return isBehind ? 1 : 1.41
  })
}

function decibels(level: number): number {
  return 20 * Math.log10(level)
}
