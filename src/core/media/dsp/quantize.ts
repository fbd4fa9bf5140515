/**
 * Rounds a plane to integers from `-full` to `full - 1`, halves upwards, and writes it to every `step`th sample from
 * `at` on. NaN becomes 0.
 *
 * @returns how many samples were clipped
 */
export function quantize(
  plane: Float32Array,
  samples: Int16Array | Int32Array | Float32Array,
  at: number,
  step: number,
  full: number,
): number {
  let clipped = 0
  for (let i = 0; i < plane.length; i++, at += step) {
    const value = Math.floor(plane[i]! * full + 0.5)
    if (value >= full || value < -full) {
      samples[at] = value > 0 ? full - 1 : -full
      clipped++
    } else {
      samples[at] = value
    }
  }
  return clipped
}
