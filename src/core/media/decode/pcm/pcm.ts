/** Encoding of a sample of uncompressed audio. */
export interface PcmEncoding {
  /** `mu-law` and `a-law` are the 8-bit logarithmic codes of ITU-T G.711. */
  kind: 'signed' | 'unsigned' | 'float' | 'mu-law' | 'a-law'
  /** Bytes per sample: 1 to 4 for integers, 4 or 8 for floats, 1 for G.711. */
  bytes: number
  littleEndian: boolean
}

/**
 * Float files with the range of 16-bit integers are accepted. Larger values are damage and would corrupt the whole
 * separation.
 */
const largestFloat = 65_536

/**
 * Splits interleaved samples into planes. Integers are divided by 2^(bits-1), so that writing them back at the same
 * width gives the same bytes. Trailing bytes that do not complete a sample of every channel are ignored.
 *
 * @param onDamage is called for each float that cannot be sound and is silenced
 */
export function decodePcm(
  bytes: Uint8Array,
  encoding: PcmEncoding,
  channelCount: number,
  onDamage?: () => void,
): Float32Array<ArrayBuffer>[] {
  const sampleCount = Math.floor(bytes.length / (encoding.bytes * channelCount))
  const channels = Array.from({ length: channelCount }, () => new Float32Array(sampleCount))
  if (encoding.kind === 'signed' && encoding.bytes === 2 && encoding.littleEndian && bytes.byteOffset % 2 === 0) {
    const samples = new Int16Array(bytes.buffer, bytes.byteOffset, sampleCount * channelCount)
    channels.forEach((plane, channel) => spread16(samples, channel, channelCount, plane))
    return channels
  }
  const sample = sampleReader(bytes, encoding, onDamage)
  for (let channel = 0; channel < channelCount; channel++) {
    const plane = channels[channel]!
    const stride = channelCount * encoding.bytes
    for (let index = 0, offset = channel * encoding.bytes; index < sampleCount; index++, offset += stride)
      plane[index] = sample(offset)
  }
  return channels
}

/**
 * The most common encoding, four times as fast as a read per sample. Every platform that ONNX Runtime supports is
 * little-endian.
 */
function spread16(samples: Int16Array, first: number, step: number, plane: Float32Array): void {
  for (let index = 0, at = first; index < plane.length; index++, at += step) plane[index] = samples[at]! / 32_768
}

function sampleReader(
  bytes: Uint8Array,
  { kind, bytes: width, littleEndian }: PcmEncoding,
  onDamage?: () => void,
): (offset: number) => number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (kind === 'float') {
    return (offset) => {
      const value = width === 8 ? view.getFloat64(offset, littleEndian) : view.getFloat32(offset, littleEndian)
      if (Math.abs(value) <= largestFloat) return value
      onDamage?.()
      return 0
    }
  }
  if (kind === 'unsigned') return (offset) => (view.getUint8(offset) - 128) / 128
  if (kind === 'mu-law') return (offset) => muLaw[bytes[offset]!]!
  if (kind === 'a-law') return (offset) => aLaw[bytes[offset]!]!
  switch (width) {
    case 1:
      return (offset) => view.getInt8(offset) / 128
    case 2:
      return (offset) => view.getInt16(offset, littleEndian) / 32_768
    case 3:
      return littleEndian
        ? (offset) => ((view.getUint8(offset) << 8) | (view.getInt16(offset + 1, true) << 16)) / 2_147_483_648
        : (offset) => ((view.getInt16(offset, false) << 16) | (view.getUint8(offset + 2) << 8)) / 2_147_483_648
    default:
      return (offset) => view.getInt32(offset, littleEndian) / 2_147_483_648
  }
}

/** G.711, table 2a: inverted bits; sign, exponent and mantissa around a bias of 33 steps. */
const muLaw = Float32Array.from({ length: 256 }, (_, code) => {
  const value = ~code & 0xff
  const magnitude = ((((value & 15) << 3) + 132) << ((value >> 4) & 7)) - 132
  return (value & 0x80 ? -magnitude : magnitude) / 32_768
})

/** G.711, table 1a: even bits inverted; the lowest segment has no leading one. */
const aLaw = Float32Array.from({ length: 256 }, (_, code) => {
  const value = code ^ 0x55
  const exponent = (value >> 4) & 7
  const step = ((value & 15) << 4) + 8
  const magnitude = exponent === 0 ? step : (step + 256) << (exponent - 1)
  return (value & 0x80 ? magnitude : -magnitude) / 32_768
})
