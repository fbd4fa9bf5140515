import type { StereoPacking } from '../../../src/core/media/dsp/kernels/pack-stereo.js'
import { quantize } from '../../../src/core/media/dsp/quantize.js'

export function plainStereoPacking(memory: Float32Array): StereoPacking {
  const samples = new Int16Array(memory.buffer)
  return {
    pack(left, right, packed, count) {
      const quantized = (plane: number, at: number) =>
        quantize(memory.subarray(plane, plane + count), samples, at, 2, 32_768)
      return quantized(left, 2 * packed) + quantized(right, 2 * packed + 1)
    },
  }
}
