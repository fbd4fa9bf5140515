import { createKernel, type Kernel } from './kernel.js'

/** The loops of an MP3 encoder over the samples of a granule. Offsets count floats. */
export interface Mp3Kernels {
  /**
   * The filter bank: writes rows of 32 subbands, each from 512 samples, 32 samples further on each time. In every second row the
   * odd subbands change their sign, as the transform after it expects.
   *
   * @param window 512 factors
   * @param cosines rows of 16, one for each of the 32 sums that are left of the 512 products
   * @param scratch room for 96 floats
   */
  subbandRows(samples: number, window: number, cosines: number, scratch: number, to: number, count: number): void
  /**
   * Multiplies the 36 values of each subband with a matrix of 36 rows and 18 columns, stored 20 apart. Writes 18 values for each
   * subband, and two more after the last.
   */
  transform(rows: number, matrix: number, to: number): void
  /** Writes the magnitudes to the power of 3/4. The count is a multiple of 4. */
  compressed(values: number, to: number, count: number): void
  /** Writes the values, multiplied and rounded as MP3 encoders do, as 32-bit integers. The count is a multiple of 4. */
  quantise(values: number, scale: number, to: number, count: number): void
}

export function createMp3Kernels(floats: number): Kernel<Mp3Kernels> {
  return createKernel('mp3-kernels', floats, plainMp3Kernels)
}

/** The MP3 kernels in plain TypeScript. Sums are added in the order of the vectors, and rounded at each step. */
export function plainMp3Kernels(memory: Float32Array<ArrayBuffer>): Mp3Kernels {
  const integers = new Int32Array(memory.buffer)
  const { fround } = Math
  return {
    subbandRows(samples, window, cosines, scratch, to, count) {
      const folded = scratch + 64
      for (let row = 0; row < count; row++, samples += 32, to += 32) {
        for (let lane = 0; lane < 64; lane++) {
          let sum = 0
          for (let i = lane; i < 512; i += 64) sum = fround(sum + fround(memory[samples + i] * memory[window + i]))
          memory[scratch + lane] = sum
        }
        memory[folded] = memory[scratch + 47]
        for (let i = 1; i < 32; i++) {
          const other = i <= 16 ? memory[scratch + 47 + i] : -memory[scratch + i - 17]
          memory[folded + i] = memory[scratch + 47 - i] + other
        }
        for (let subband = 0; subband < 16; subband++) {
          let [even, odd] = [0, 0]
          for (let i = 0; i < 32; i += 2) {
            even = fround(even + fround(memory[folded + i] * memory[cosines + 16 * i + subband]))
            odd = fround(odd + fround(memory[folded + i + 1] * memory[cosines + 16 * i + 16 + subband]))
          }
          const sign = row % 2 === 1 && subband % 2 === 1 ? -1 : 1
          memory[to + subband] = sign * (even + odd)
          memory[to + 31 - subband] = (row % 2 === 1 ? -sign : sign) * (even - odd)
        }
      }
    },

    transform(rows, matrix, to) {
      for (let subband = 0; subband < 32; subband++) {
        for (let column = 0; column < 20; column++) {
          let sum = 0
          for (let row = 0; row < 36; row++)
            sum = fround(sum + fround(memory[rows + 32 * row + subband] * memory[matrix + 20 * row + column]))
          memory[to + 18 * subband + column] = sum
        }
      }
    },

    compressed(values, to, count) {
      for (let i = 0; i < count; i++) {
        const magnitude = Math.abs(memory[values + i])
        memory[to + i] = Math.sqrt(fround(magnitude * fround(Math.sqrt(magnitude))))
      }
    },

    quantise(values, scale, to, count) {
      const [factor, rounding] = [fround(scale), fround(0.4054)]
      for (let i = 0; i < count; i++) {
        const scaled = fround(fround(memory[values + i] * factor) + rounding)
        integers[to + i] = Math.min(Math.max(Math.trunc(scaled), -(2 ** 31)), 2 ** 31 - 1)
      }
    },
  }
}
