import { createKernel, type Kernel } from './kernel.js'

export interface StereoPacking {
  /**
   * Rounds two planes to 16 bits as `quantize` does, interleaved: sample `i` of both takes the four bytes of
   * `memory[packed + i]`.
   *
   * @returns how many samples were clipped
   */
  pack(left: number, right: number, packed: number, count: number): number
}

export function createStereoPacking(floats: number): Kernel<StereoPacking> {
  return createKernel('pack-stereo', floats)
}

/** Few enough of each channel for the first-level cache to hold them while the channels are interleaved. */
export const samplesAtOnce = 2048

/**
 * Rounds two planes of any length to 16 bits, interleaved in `samples`: about ten times as fast as `quantize`.
 *
 * @returns how many samples were clipped
 */
export function packStereo(
  left: Float32Array,
  right: Float32Array,
  samples: { set(values: ArrayLike<number>, index: number): void },
): number {
  const { memory, pack } = (packing ??= createStereoPacking(3 * samplesAtOnce))
  const packed = new Int16Array(memory.buffer, offsets.packed * Float32Array.BYTES_PER_ELEMENT)
  let clipped = 0
  for (let from = 0; from < left.length; from += samplesAtOnce) {
    const count = Math.min(samplesAtOnce, left.length - from)
    memory.set(left.subarray(from, from + count), offsets.left)
    memory.set(right.subarray(from, from + count), offsets.right)
    clipped += pack(offsets.left, offsets.right, offsets.packed, count)
    samples.set(packed.subarray(0, 2 * count), 2 * from)
  }
  return clipped
}

let packing: Kernel<StereoPacking> | undefined

const offsets = { left: 0, right: samplesAtOnce, packed: 2 * samplesAtOnce }
