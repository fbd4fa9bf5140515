import { createKernel, type Kernel } from './kernel.js'

export interface DotProduct {
  /** Sum of `memory[a + i] * memory[b + i]` for `i` below `count`, in the order of its plain twin. */
  dotProduct(a: number, b: number, count: number): number
}

/** About ten times as fast as the plain loop, and fastest where `count` is a multiple of 8. */
export function createDotProduct(floats: number): Kernel<DotProduct> {
  return createKernel('dot-product', floats)
}
