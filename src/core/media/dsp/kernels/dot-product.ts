import { createKernel, type Kernel } from './kernel.js'

export interface DotProduct {
  /** Sum of `memory[a + i] * memory[b + i]` for `i` below `count`, in the order that `plainDotProduct` shows. */
  dotProduct(a: number, b: number, count: number): number
}

/** About ten times as fast as the plain loop, and fastest where `count` is a multiple of 8. */
export function createDotProduct(floats: number): Kernel<DotProduct> {
  return createKernel('dot-product', floats, plainDotProduct)
}

/** Eight running sums, as two vectors have them; the first one takes what is left over. */
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
