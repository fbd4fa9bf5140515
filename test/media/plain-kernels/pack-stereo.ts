import type { StereoPacking } from '../../../src/core/media/dsp/kernels/pack-stereo.js'
import { quantise } from '../../../src/core/media/dsp/quantise.js'

export function plainStereoPacking(memory: Float32Array): StereoPacking {
  const samples = new Int16Array(memory.buffer)
  return {
    pack(left, right, packed, count) {
      const quantised = (plane: number, at: number) =>
        quantise(memory.subarray(plane, plane + count), samples, at, 2, 32_768)
      return quantised(left, 2 * packed) + quantised(right, 2 * packed + 1)
    },
  }
}
