import type { DotProduct } from '../../../src/core/media/dsp/kernels/dot-product.js'

/** Eight running sums, like those of two vectors; the first one takes the remainder. */
export function plainDotProduct(memory: Float32Array): DotProduct {
  return {
    dotProduct(a, b, count) {
      const sums = new Float32Array(8)
      const whole = count - (count % 8)
      for (let i = 0; i < count; i++) sums[i < whole ? i % 8 : 0]! += Math.fround(memory[a + i]! * memory[b + i]!)
      for (let lane = 0; lane < 4; lane++) sums[lane]! += sums[lane + 4]!
      for (let lane = 1; lane < 4; lane++) sums[0]! += sums[lane]!
      return sums[0]!
    },
  }
}
