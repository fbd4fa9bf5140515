import type { Mp3Kernels } from '../../../src/core/media/dsp/kernels/mp3-kernels.js'
import { plainMp3Codes } from './mp3-codes.js'

/** The MP3 kernels in plain TypeScript. Sums are added in the vectors' order, and rounded at each step. */
export function plainMp3Kernels(memory: Float32Array<ArrayBuffer>): Mp3Kernels {
  const integers = new Int32Array(memory.buffer)
  const doubles = new Float64Array(memory.buffer, 0, memory.length >> 1)
  const { fround } = Math
  return {
    subbandRows(samples, window, cosines, scratch, to, count) {
      const folded = scratch + 64
      for (let row = 0; row < count; row++, samples += 32, to += 32) {
        for (let lane = 0; lane < 64; lane++) {
          let sum = 0
          for (let i = lane; i < 512; i += 64) sum = fround(sum + fround(memory[samples + i]! * memory[window + i]!))
          memory[scratch + lane] = sum
        }
        memory[folded] = memory[scratch + 47]!
        for (let i = 1; i < 32; i++) {
          const other = i <= 16 ? memory[scratch + 47 + i] : -memory[scratch + i - 17]!
          memory[folded + i] = memory[scratch + 47 - i]! + other!
        }
        for (let subband = 0; subband < 16; subband++) {
          let [even, odd] = [0, 0]
          for (let i = 0; i < 32; i += 2) {
            even = fround(even + fround(memory[folded + i]! * memory[cosines + 16 * i + subband]!))
            odd = fround(odd + fround(memory[folded + i + 1]! * memory[cosines + 16 * i + 16 + subband]!))
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
            sum = fround(sum + fround(memory[rows + 32 * row + subband]! * memory[matrix + 20 * row + column]!))
          memory[to + 18 * subband + column] = sum
        }
      }
    },

    limited(samples, most, count) {
      for (let i = samples; i < samples + count; i++)
        memory[i] = Number.isNaN(memory[i]) ? 0 : Math.min(Math.max(memory[i]!, -most), most)
    },

    energies(rows, to) {
      for (let part = 0; part < 3; part++) {
        let sum = 0
        for (let row = 6 * part; row < 6 * part + 6; row++)
          for (let i = rows + 32 * row + 3; i < rows + 32 * row + 32; i++) sum += memory[i]! * memory[i]!
        doubles[to / 2 + part] = sum
      }
    },

    reduceAliases(values, factors) {
      for (let edge = values + 18; edge < values + 576; edge += 18) {
        for (let i = 0; i < 8; i++) {
          const [below, above] = [memory[edge - 1 - i], memory[edge + i]]
          const [cosine, sine] = [doubles[factors / 2 + i], doubles[factors / 2 + 8 + i]]
          memory[edge - 1 - i] = below! * cosine! + above! * sine!
          memory[edge + i] = above! * cosine! - below! * sine!
        }
      }
    },

    bandSquares(values, ends, bands, to) {
      let i = 0
      for (let band = 0; band < bands; band++) {
        let sum = 0
        for (; i < integers[ends + band]!; i++) sum += memory[values + i]! * memory[values + i]!
        doubles[to / 2 + band] = sum
      }
    },

    stereoSums(left, right, ends, bands, to) {
      let i = 0
      for (let band = 0; band < bands; band++) {
        let [ll, rr, lr] = [0, 0, 0]
        for (; i < integers[ends + band]!; i++) {
          const [a, b] = [memory[left + i], memory[right + i]]
          ll += a! * a!
          rr += b! * b!
          lr += a! * b!
        }
        doubles.set([ll, rr, lr], to / 2 + 3 * band)
      }
    },

    middleAndSide(left, right, count) {
      for (let i = 0; i < count; i++) {
        const [a, b] = [memory[left + i], memory[right + i]]
        memory[left + i] = (a! + b!) * Math.SQRT1_2
        memory[right + i] = (a! - b!) * Math.SQRT1_2
      }
    },

    compressed(values, to, count) {
      for (let i = 0; i < count; i++) {
        const magnitude = Math.abs(memory[values + i]!)
        memory[to + i] = Math.sqrt(fround(magnitude * fround(Math.sqrt(magnitude))))
      }
    },

    quantize(values, scale, to, count) {
      const [factor, rounding] = [fround(scale), fround(0.4054)]
      for (let i = 0; i < count; i++) {
        const scaled = fround(fround(memory[values + i]! * factor) + rounding)
        integers[to + i] = Math.min(Math.max(Math.trunc(scaled), -(2 ** 31)), 2 ** 31 - 1)
      }
    },

    scaleBands(values, ends, scales, bands, count) {
      let i = 0
      for (let band = 0; band < bands; band++)
        for (; i < integers[ends + band]!; i++) memory[values + i]! *= doubles[scales / 2 + band]!
      let largest = 0
      for (i = values; i < values + count; i++) largest = Math.max(largest, memory[i]!)
      return largest
    },

    ...plainMp3Codes(memory),
  }
}
