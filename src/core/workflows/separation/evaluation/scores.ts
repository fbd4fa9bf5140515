/** Scores in dB; higher is better. Definitions as in the literature; sums are over channels and samples. */
export interface StemScores {
  /** `10 log10((sum s^2 + 1e-7) / (sum (s - e)^2 + 1e-7))` over the whole track. */
  uSdr: number
  /**
   * Median of the same ratio over chunks of one second. Chunks with a silent reference or estimate are left out, and so
   * is an incomplete last chunk unless it is the only one. NaN if no chunk is left.
   */
  cSdr: number
  /**
   * `10 log10(|a s|^2 / |a s - e|^2)` with the best-fitting scale `a = <s, e> / <s, s>`, so that level does not matter.
   */
  siSdr: number
}

/** Compares an estimate with its reference, block by block. */
export function stemComparison(sampleRate: number) {
  const cut = chunkCutter(sampleRate)
  const ended = new Sums()
  const chunkScores: number[] = []
  let chunk = new Sums()
  return {
    /** Adds samples of the reference `s` and the estimate `e`: the same channels, the same length. */
    add(reference: readonly Float32Array[], estimate: readonly Float32Array[]): void {
      for (const { from, to, isFull } of cut(reference[0]!.length)) {
        reference.forEach((plane, channel) => chunk.add(plane, estimate[channel]!, from, to))
        if (!isFull) continue
        if (chunk.isSounding) chunkScores.push(chunk.sdr)
        ended.join(chunk)
        chunk = new Sums()
      }
    },

    scores(): StemScores {
      const rest = chunkScores.length === 0 && chunk.isSounding ? [chunk.sdr] : []
      const whole = new Sums().join(ended).join(chunk)
      return { uSdr: whole.sdr, cSdr: median([...chunkScores, ...rest]), siSdr: whole.siSdr }
    },
  }
}

/**
 * Level of the predicted vocals where there are none: in chunks of one second where the true vocals are 60 dB or more
 * below the mixture.
 */
export function falseVocalsMeter(sampleRate: number) {
  const cut = chunkCutter(sampleRate)
  let chunk = { vocals: 0, mixture: 0, estimate: 0 }
  const free = { mixture: 0, estimate: 0 }
  return {
    /** Adds samples of the true vocals, the mixture and the predicted vocals: the same channels, the same length. */
    add(vocals: readonly Float32Array[], mixture: readonly Float32Array[], estimate: readonly Float32Array[]): void {
      for (const { from, to, isFull } of cut(vocals[0]!.length)) {
        chunk.vocals += energy(vocals, from, to)
        chunk.mixture += energy(mixture, from, to)
        chunk.estimate += energy(estimate, from, to)
        if (!isFull) continue
        if (chunk.vocals <= vocalFreeShare * chunk.mixture) {
          free.mixture += chunk.mixture
          free.estimate += chunk.estimate
        }
        chunk = { vocals: 0, mixture: 0, estimate: 0 }
      }
    },

    /**
     * Energy of the predicted vocals over that of the mixture in these chunks, in dB; NaN if there are none. An
     * incomplete last chunk is left out.
     */
    level: () => (free.mixture === 0 ? NaN : 10 * Math.log10(free.estimate / free.mixture)),
  }
}

/** -60 dB: stems from lossy files are never quite silent. */
const vocalFreeShare = 1e-6

function energy(planes: readonly Float32Array[], from: number, to: number): number {
  let sum = 0
  for (const plane of planes) for (let i = from; i < to; i++) sum += plane[i]! * plane[i]!
  return sum
}

/**
 * Cuts blocks at the boundaries of chunks of one second.
 *
 * @returns a generator of the parts of a block of that many samples; `isFull`: a chunk ends with this part
 */
function chunkCutter(sampleRate: number) {
  const length = Math.round(sampleRate)
  let position = 0
  return function* (samples: number): Generator<{ from: number; to: number; isFull: boolean }> {
    for (let from = 0; from < samples;) {
      const to = Math.min(samples, from + length - position)
      position = (position + to - from) % length
      yield { from, to, isFull: position === 0 }
      from = to
    }
  }
}

/** The middle value, or the mean of the two middle ones; NaN for an empty list. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

const guard = 1e-7

class Sums {
  #reference = 0
  #estimate = 0
  #product = 0
  #difference = 0

  add(reference: Float32Array, estimate: Float32Array, from: number, to: number): void {
    let rr = 0
    let ee = 0
    let re = 0
    let dd = 0
    for (let i = from; i < to; i++) {
      const r = reference[i]!
      const e = estimate[i]!
      rr += r * r
      ee += e * e
      re += r * e
      dd += (r - e) * (r - e)
    }
    this.#reference += rr
    this.#estimate += ee
    this.#product += re
    this.#difference += dd
  }

  join(other: Sums): this {
    this.#reference += other.#reference
    this.#estimate += other.#estimate
    this.#product += other.#product
    this.#difference += other.#difference
    return this
  }

  get isSounding(): boolean {
    return this.#reference > 0 && this.#estimate > 0
  }

  get sdr(): number {
    return 10 * Math.log10((this.#reference + guard) / (this.#difference + guard))
  }

  /** From the sums alone: `|a s|^2 = <s, e>^2 / <s, s>` and `|a s - e|^2 = <e, e> - |a s|^2`. */
  get siSdr(): number {
    if (this.#reference === 0) return NaN
    const target = this.#product ** 2 / this.#reference
    return 10 * Math.log10(target / Math.max(this.#estimate - target, Number.MIN_VALUE))
  }
}
