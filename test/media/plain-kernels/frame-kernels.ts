import type { FrameKernels } from '../../../src/core/media/dsp/kernels/frame-kernels.js'

export function plainFrameKernels(memory: Float32Array): FrameKernels {
  return {
    multiply(to, a, b, count) {
      for (let i = 0; i < count; i++) memory[to + i] = memory[a + i]! * memory[b + i]!
    },
    multiplyAdd(to, a, b, count) {
      for (let i = 0; i < count; i++) memory[to + i]! += Math.fround(memory[a + i]! * memory[b + i]!)
    },
    split(pairs, even, odd, count) {
      for (let i = 0; i < count; i++) {
        memory[even + i] = memory[pairs + 2 * i]!
        memory[odd + i] = memory[pairs + 2 * i + 1]!
      }
    },
    merge(pairs, even, odd, count) {
      for (let i = 0; i < count; i++) {
        memory[pairs + 2 * i] = memory[even + i]!
        memory[pairs + 2 * i + 1] = memory[odd + i]!
      }
    },
  }
}
