/** A sample by its index; NaN outside, so that a wrong index is noticed instead of passing for silence. */
export function sampleAt(samples: ArrayLike<number>, index: number): number {
  return samples[index] ?? Number.NaN
}
