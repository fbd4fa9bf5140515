import { codeTables, codingFields } from '../../dsp/kernels/mp3-codes.js'

/** Samples per channel and values of each of the two halves of a frame. */
export const granuleSamples = 576
/** Samples before a granule that its first row needs. */
export const historySamples = 480
/** Values that the samples of a granule become: rows of 32 subbands. */
export const rowFloats = 18 * 32
export const matrixColumns = 20

/** Most bands of a granule. */
const mostBands = 39
const maxFrameBytes = 2048

/** Offsets in the kernel's memory, in floats; those of doubles are even. */
export function offsetsOf(channels: number) {
  let at = 0
  const take = (floats: number) => (at += floats) - floats
  return {
    aliasFactors: take(2 * 16),
    /** Doubles: three sums for each band, or a factor. */
    sums: take(2 * 3 * mostBands),
    scales: take(2 * mostBands),
    codeTables: take(codeTables.end),
    window: take(512),
    cosines: take(32 * 16),
    matrices: take(4 * 36 * matrixColumns),
    scratch: take(96),
    longEnds: take(mostBands),
    shortEnds: take(mostBands),
    longRegions: take(granuleSamples + 2),
    switchedRegions: take(granuleSamples + 2),
    channels: Array.from({ length: channels }, () => ({
      samples: take(historySamples + granuleSamples),
      /** Of the previous granule, this one and the next. */
      rows: take(3 * rowFloats),
      granules: [0, 1].map(() => ({
        values: take(granuleSamples + 4),
        /** Magnitudes of the values to the power of 3/4, by the factors of their bands. */
        compressed: take(granuleSamples),
        /** The coded magnitudes, as integers. */
        quantized: take(granuleSamples),
        coding: take(codingFields.count),
      })),
    })),
    frame: take(maxFrameBytes / 4),
    end: at,
  }
}

export type Offsets = ReturnType<typeof offsetsOf>
export type GranuleOffsets = Offsets['channels'][number]['granules'][number]

export function frameBytes(memory: Float32Array<ArrayBuffer>, { frame }: Offsets): Uint8Array<ArrayBuffer> {
  return new Uint8Array(memory.buffer, 4 * frame, maxFrameBytes)
}
