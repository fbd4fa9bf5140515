import { grown } from '../../../media/dsp/sample-window.js'
import { type Estimate, stemEntries, type Stems } from '../../../models/stems.js'

/** Finished samples of the stems, from track sample `start` on. Valid until the next call. */
export type FinishedAudio = Pick<Estimate, 'start' | 'sampleCount' | 'stems'>

/**
 * The samples that later estimates may still change, from track sample `start` on: their sums and those of the weights.
 */
export interface OverlapAddState {
  start: number
  weights: Float32Array
  sums: Stems
}

/**
 * Weighted overlap-add of estimates in track order: `sum(weight * estimate) / sum(weight)`, with the divisor at least
 * 1e-8. Keeps only the samples that later estimates may still change.
 */
export class OverlapAdd {
  #start = 0
  /** Number of samples from `#start` that have a contribution; beyond them the sums are zero. */
  #used = 0
  #weights = new Float32Array(0)
  /** Input for accumulating the sum of the weights. */
  #ones = new Float32Array(0)
  readonly #sums: Stems = {}
  #finished: FinishedAudio | undefined

  /** Restores a state, as if the estimates that led to it had been added. Must be called first. */
  restore({ start, weights, sums }: OverlapAddState): void {
    this.#start = start
    this.#used = weights.length
    this.#weights = weights.slice()
    for (const [stem, planes] of stemEntries(sums)) this.#sums[stem] = planes.map((plane) => plane.slice())
  }

  /** Valid until the next call. */
  get state(): OverlapAddState {
    const finished = this.#finished?.sampleCount ?? 0
    const rest = (plane: Float32Array) => plane.subarray(finished, this.#used)
    const sums = Object.fromEntries(stemEntries(this.#sums).map(([stem, planes]) => [stem, planes.map(rest)]))
    return { start: this.#start + finished, weights: rest(this.#weights), sums }
  }

  /** Adds one estimate and returns the samples that this finished. */
  add(estimate: Estimate): FinishedAudio {
    this.#dropFinished()
    const offset = estimate.start - this.#start
    const end = offset + estimate.sampleCount
    this.#reserve(end, estimate)
    if (this.#ones.length < estimate.sampleCount) this.#ones = new Float32Array(estimate.sampleCount).fill(1)
    accumulate(this.#weights, offset, this.#used, estimate, this.#ones)
    for (const [stem, planes] of stemEntries(estimate.stems)) {
      this.#sums[stem]?.forEach((sum, channel) => accumulate(sum, offset, this.#used, estimate, planes[channel]!))
    }
    this.#used = Math.max(this.#used, end)
    return this.#finish(Math.min(Math.max(0, estimate.finishedBefore - this.#start), this.#used))
  }

  #finish(sampleCount: number): FinishedAudio {
    const weights = this.#weights
    const stems: Stems = {}
    for (const [stem, sums] of stemEntries(this.#sums)) {
      stems[stem] = sums.map((sum) => {
        // Most samples come from a single estimate with weight 1.
        for (let i = 0; i < sampleCount; i++) if (weights[i] !== 1) sum[i]! /= Math.max(weights[i]!, 1e-8)
        return sum.subarray(0, sampleCount)
      })
    }
    this.#finished = { start: this.#start, sampleCount, stems }
    return this.#finished
  }

  /** Moves unfinished samples to the front. Deferred, so that finished samples can be returned without a copy. */
  #dropFinished(): void {
    const dropped = this.#finished?.sampleCount ?? 0
    if (dropped === 0) return
    for (const plane of [this.#weights, ...Object.values(this.#sums).flat()]) {
      plane.copyWithin(0, dropped, this.#used)
      plane.fill(0, this.#used - dropped, this.#used)
    }
    this.#start += dropped
    this.#used -= dropped
    this.#finished = undefined
  }

  #reserve(length: number, { stems }: Estimate): void {
    if (length > this.#weights.length) {
      this.#weights = grown(this.#weights, length)
      for (const [stem, planes] of stemEntries(this.#sums))
        this.#sums[stem] = planes.map((plane) => grown(plane, length))
    }
    for (const [stem, planes] of stemEntries(stems)) {
      this.#sums[stem] ??= planes.map(() => new Float32Array(this.#weights.length))
    }
  }
}

/** `sum[offset + i] += weight[i] * values[i]`. Sums from `used` on are zero. */
function accumulate(
  sum: Float32Array,
  offset: number,
  used: number,
  { sampleCount, fadeIn, fadeOut }: Estimate,
  values: Float32Array,
): void {
  const flatEnd = sampleCount - fadeOut.length
  const copiedFrom = Math.min(Math.max(fadeIn.length, used - offset), flatEnd)
  for (let i = 0; i < fadeIn.length; i++) sum[offset + i]! += fadeIn[i]! * values[i]!
  for (let i = fadeIn.length; i < copiedFrom; i++) sum[offset + i]! += values[i]!
  sum.set(values.subarray(copiedFrom, flatEnd), offset + copiedFrom)
  for (let i = flatEnd, at = 0; i < sampleCount; i++, at++) sum[offset + i]! += fadeOut[at]! * values[i]!
}
