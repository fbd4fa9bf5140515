/**
 * Decoded peaks are within about 1.5. Damaged frames give values of 40 and more, which would corrupt a whole segment.
 */
const largestSample = 8

/** Sets impossible samples to zero. Returns their number. */
export function silenceDamage(planes: readonly Float32Array[]): number {
  let count = 0
  for (const plane of planes) {
    for (let i = 0; i < plane.length; i++) {
      // Written so that NaN also fails the comparison.
      if (!(Math.abs(plane[i]!) <= largestSample)) {
        plane[i] = 0
        count++
      }
    }
  }
  return count
}
