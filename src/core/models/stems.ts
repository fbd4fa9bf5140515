/** The stems that this library knows. `accompaniments` is everything but the vocals. */
export const stemNames = ['vocals', 'accompaniments', 'drums', 'bass', 'other', 'guitar', 'piano'] as const

export type StemName = (typeof stemNames)[number]

/** Planes of some stems. */
export type Stems = Partial<Record<StemName, Float32Array[]>>

export function stemEntries<Value>(stems: Partial<Record<StemName, Value>>): [StemName, Value][] {
  return Object.entries(stems) as [StemName, Value][]
}

/** The contribution of one segment to the stems. */
export interface Estimate {
  /** Track sample of the first value. */
  start: number
  /** By stem, then channel; all of one length. Valid until the next `collect`. */
  stems: Stems
  /** Length of each array. */
  sampleCount: number
  /**
   * Weights of the first and of the last samples in the overlap-add `sum(weight * estimate) / sum(weight)`; the weight
   * in between is 1.
   */
  fadeIn: Float32Array
  fadeOut: Float32Array
  /** Later segments contribute nothing before this track sample. */
  finishedBefore: number
}
