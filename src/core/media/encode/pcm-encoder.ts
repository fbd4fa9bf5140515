import { packStereo, samplesAtOnce } from '../dsp/kernels/pack-stereo.js'
import { quantize } from '../dsp/quantize.js'

/** How samples are stored: 16- or 24-bit integers, or 32-bit floats. */
export type PcmFormat = '16' | '24' | '32f'

export const bytesPerSample: Record<PcmFormat, number> = { '16': 2, '24': 3, '32f': 4 }

/**
 * Interleaves planes into samples, the inverse of `decodePcm`. Integers are `sample * 2^(bits-1)`, rounded half up
 * and clipped.
 */
export class PcmEncoder {
  /** Samples beyond the integer range so far. */
  clippedSamples = 0
  readonly #format: PcmFormat
  readonly #isBigEndian: boolean
  /** Reused and overwritten for every block. */
  #samples: Samples = new Int16Array(0)

  constructor(format: PcmFormat, isBigEndian = false) {
    this.#format = format
    this.#isBigEndian = isBigEndian
  }

  /** @returns bytes that are valid until the next call */
  encode(planes: readonly Float32Array[]): Uint8Array {
    const { bytes } = this.integers(planes)
    return this.#isBigEndian ? swapped(bytes, bytesPerSample[this.#format]) : bytes
  }

  /** @returns samples as little-endian bytes and as numbers, both valid until the next call */
  integers(planes: readonly Float32Array[]): { bytes: Uint8Array; samples: Samples } {
    const format = this.#format
    const count = planes.length * planes[0]!.length
    if (this.#samples.length < count) this.#samples = new sampleArrays[format](count)
    const samples = this.#samples.subarray(0, count)
    if (format === '16' && planes.length === 2) {
      this.clippedSamples += packStereo(planes[0]!, planes[1]!, samples)
    } else {
      for (let from = 0; from < planes[0]!.length; from += samplesAtOnce) this.#interleave(planes, from, samples)
    }
    const bytes = format === '24' ? lowThreeBytes(samples) : new Uint8Array(samples.buffer, 0, samples.byteLength)
    return { bytes, samples }
  }

  /** Writes one channel after the other. */
  #interleave(planes: readonly Float32Array[], from: number, samples: Samples): void {
    const full = fullScale[this.#format]
    for (const [channel, plane] of planes.entries()) {
      const part = plane.subarray(from, from + samplesAtOnce)
      const at = from * planes.length + channel
      if (full === undefined) spread(part, samples, at, planes.length)
      else this.clippedSamples += quantize(part, samples, at, planes.length, full)
    }
  }
}

// The functions below run for every sample that is written. The arrays are little-endian, because every platform that
// ONNX Runtime supports is.

type Samples = Int16Array | Int32Array | Float32Array

const sampleArrays = { '16': Int16Array, '24': Int32Array, '32f': Float32Array }

/** `undefined`: samples are not rounded. */
const fullScale: Record<PcmFormat, number | undefined> = { '16': 32_768, '24': 8_388_608, '32f': undefined }

/** Writes one channel to every `step`th index from `at` on. */
function spread(plane: Float32Array, samples: Samples, at: number, step: number): void {
  for (let i = 0; i < plane.length; i++, at += step) samples[at] = plane[i]!
}

function lowThreeBytes(samples: Samples): Uint8Array {
  const bytes = new Uint8Array(3 * samples.length)
  for (let i = 0, at = 0; i < samples.length; i++, at += 3) {
    const sample = samples[i]!
    bytes[at] = sample
    bytes[at + 1] = sample >> 8
    bytes[at + 2] = sample >> 16
  }
  return bytes
}

/** Reverses the bytes of each sample, in place. */
function swapped(bytes: Uint8Array, width: number): Uint8Array {
  for (let at = 0; at < bytes.length; at += width)
    for (let i = at, j = at + width - 1; i < j; i++, j--) [bytes[i], bytes[j]] = [bytes[j]!, bytes[i]!]
  return bytes
}
