import { concat } from '../../bytes.js'
import { decodePcm, type PcmEncoding } from './pcm.js'

/** Raw samples in a stream that does not state their encoding. */
export interface RawPcm {
  sampleRate: number
  channelCount: number
  encoding: PcmEncoding
}

/** Names for the raw formats that streams have: little-endian and interleaved. */
export const rawEncodings = {
  s16: { kind: 'signed', bytes: 2, littleEndian: true },
  s24: { kind: 'signed', bytes: 3, littleEndian: true },
  f32: { kind: 'float', bytes: 4, littleEndian: true },
} as const satisfies Record<string, PcmEncoding>

export type RawFormat = keyof typeof rawEncodings

/** The first `dataBytes` bytes as planes, however the input is divided. */
export async function* rawBlocks(
  input: AsyncIterable<Uint8Array>,
  { encoding, channelCount }: Omit<RawPcm, 'sampleRate'>,
  dataBytes = Infinity,
): AsyncGenerator<Float32Array[], void, void> {
  const frameBytes = encoding.bytes * channelCount
  let left = dataBytes
  let rest: Uint8Array = new Uint8Array(0)
  for await (const chunk of input) {
    const bytes = concat([rest, chunk.subarray(0, left)])
    left -= Math.min(left, chunk.length)
    const whole = bytes.length - (bytes.length % frameBytes)
    if (whole > 0) yield decodePcm(bytes.subarray(0, whole), encoding, channelCount)
    rest = bytes.subarray(whole)
    if (left === 0) return
  }
}
