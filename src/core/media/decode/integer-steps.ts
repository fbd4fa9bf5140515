import { latin1, viewOf } from '../bytes.js'

/**
 * Some decoders of lossless integers divide by the largest value, 32,767 for 16 bits, instead of by 32,768 as
 * everything else does: FLAC decoders for MP4 and Matroska for all samples, those of WavPack and TTA for positive
 * samples. The correction makes the samples exact again.
 */
export function integerSteps(codec: string) {
  let found: { bits: number; negative: boolean } | undefined
  return {
    /** Looks for the bit depth of the samples in the decoder's input. */
    look(bytes: Uint8Array): void {
      if (found) return
      const bits = widths[codec]?.(bytes)
      if (bits !== undefined && bits <= mostBits) found = { bits, negative: !dividesByTwo.has(codec) }
    },

    correct(planes: readonly Float32Array[]): void {
      if (!found) return
      const { bits, negative } = found
      const size = 2 ** (bits - 1)
      for (const plane of planes)
        for (let i = 0; i < plane.length; i++) {
          const value = plane[i]!
          if (value > 0 || negative) plane[i] = Math.round(value * (size - 1)) / size
        }
    },
  }
}

/** A 32-bit float holds no more. */
const mostBits = 24
/** Codecs whose decoders divide negative samples by 32,768. */
const dividesByTwo = new Set(['wv', 'tta'])

const widths: Record<string, (bytes: Uint8Array) => number | undefined> = {
  wv: wavpackBits,
  tta: ttaBits,
  mp4: (bytes) => flacBits(bytes, 'dfLa'),
  mkv: (bytes) => flacBits(bytes, 'fLaC'),
  webm: (bytes) => flacBits(bytes, 'fLaC'),
}

/** Number of bytes that are searched for a header. */
const searched = 64 * 1024

function find(bytes: Uint8Array, mark: string, length: number): DataView | undefined {
  const at = latin1(bytes.subarray(0, searched)).indexOf(mark)
  return at >= 0 && at + length <= bytes.length ? viewOf(bytes.subarray(at, at + length)) : undefined
}

/** Flags of the first block's header; `undefined` for floats. */
function wavpackBits(bytes: Uint8Array): number | undefined {
  const flags = find(bytes, 'wvpk', 32)?.getUint32(24, true)
  if (flags === undefined || flags & 0x80) return undefined
  return 8 * ((flags & 3) + 1) - ((flags >> 13) & 0x1f)
}

function ttaBits(bytes: Uint8Array): number | undefined {
  return find(bytes, 'TTA1', 10)?.getUint16(8, true)
}

/** STREAMINFO follows the mark and a header of four bytes. */
function flacBits(bytes: Uint8Array, mark: string): number | undefined {
  const view = find(bytes, mark, 42)
  if (!view) return undefined
  const start = mark === 'dfLa' ? 12 : 8
  return ((view.getUint16(start + 12) >> 4) & 0x1f) + 1
}
