import { viewOf } from '../../bytes.js'
import { BitReader } from './bit-reader.js'
import { crc16, crc8 } from './flac-checksum.js'

/** Content of the stream's first metadata block (RFC 9639, 8.2). */
export interface FlacStreamInfo {
  sampleRate: number
  channelCount: number
  bits: number
}

export interface FlacMetadata {
  info: FlacStreamInfo
  /** Samples per channel; 0 if unknown. */
  sampleCount: number
}

/** A frame's header (RFC 9639, 9.1), checked by its CRC-8. */
export interface FlacFrameHeader {
  blockSize: number
  channelCount: number
  /** How two channels are stored. */
  pairing: 'independent' | 'left-side' | 'side-right' | 'mid-side'
  bits: number
  sampleRate: number
  /** Index of the frame's first sample in the stream, or of the frame itself if all have the same size. */
  position: { sample: number } | { frame: number }
  headerBytes: number
}

/** The difference of two 32-bit channels takes 33 bits, which only doubles can hold. */
type FlacSamples = Int32Array | Float64Array

/** Largest size of a frame header, in bytes. */
export const longestHeader = 16

/** The content of the first metadata block (RFC 9639, 8.2), 34 bytes. */
export function readStreamInfo(bytes: Uint8Array): FlacMetadata {
  const view = viewOf(bytes)
  const packed = view.getUint32(10)
  return {
    info: { sampleRate: packed >>> 12, channelCount: ((packed >> 9) & 7) + 1, bits: ((packed >> 4) & 31) + 1 },
    sampleCount: (packed & 15) * 2 ** 32 + view.getUint32(14),
  }
}

/** The frame header at `at`, or undefined if there is none. */
export function readFrameHeader(bytes: Uint8Array, at: number, info: FlacStreamInfo): FlacFrameHeader | undefined {
  if (bytes[at] !== 0xff || (bytes[at + 1]! & 0xfe) !== 0xf8) return undefined
  const reader = new BitReader(bytes, at + 2)
  const blockCode = reader.unsigned(4)
  const rateCode = reader.unsigned(4)
  const channelCode = reader.unsigned(4)
  const bitsCode = reader.unsigned(3)
  if (blockCode === 0 || rateCode === 15 || channelCode > 10 || bitsCode === 3 || reader.unsigned(1) === 1)
    return undefined
  const number = codedNumber(reader)
  if (number === undefined) return undefined
  const blockSize = blockSizeOf(blockCode, reader)
  const sampleRate = sampleRateOf(rateCode, reader, info)
  const headerBytes = reader.position / 8 - at + 1
  if (reader.unsigned(8) !== crc8(bytes, at, at + headerBytes - 1) || reader.isOverrun) return undefined
  const isVariable = (bytes[at + 1]! & 1) === 1
  return {
    blockSize,
    channelCount: channelCode < 8 ? channelCode + 1 : 2,
    pairing: (['left-side', 'side-right', 'mid-side'] as const)[channelCode - 8] ?? 'independent',
    bits: [info.bits, 8, 12, 0, 16, 20, 24, 32][bitsCode]!,
    sampleRate,
    position: isVariable ? { sample: number } : { frame: number },
    headerBytes,
  }
}

/**
 * Decodes the frame whose header was read at `at`, to integers of `bits` bits per channel; undefined if it is damaged
 * or incomplete.
 */
export function decodeFrame(bytes: Uint8Array, at: number, header: FlacFrameHeader) {
  const reader = new BitReader(bytes, at + header.headerBytes)
  const samples: FlacSamples[] = []
  for (let channel = 0; channel < header.channelCount; channel++) {
    const isSide = header.pairing !== 'independent' && channel === (header.pairing === 'side-right' ? 0 : 1)
    const plane = decodeSubframe(reader, header.blockSize, header.bits + (isSide ? 1 : 0))
    if (!plane || reader.isOverrun) return undefined
    samples.push(plane)
  }
  const end = Math.ceil(reader.position / 8)
  if (end + 2 > bytes.length || crc16(bytes, at, end) !== ((bytes[end]! << 8) | bytes[end + 1]!)) return undefined
  unpair(samples, header.pairing)
  return { samples, bytes: end + 2 - at }
}

/** The UTF-8-like number of 1 to 7 bytes. */
function codedNumber(reader: BitReader): number | undefined {
  const first = reader.unsigned(8)
  if (first < 0x80) return first
  const length = Math.clz32(~(first << 24))
  if (length < 2 || length > 7) return undefined
  let value = first & (0x7f >> length)
  for (let index = 1; index < length; index++) {
    const next = reader.unsigned(8)
    if (next >> 6 !== 2) return undefined
    value = value * 64 + (next & 63)
  }
  return value
}

function blockSizeOf(code: number, reader: BitReader): number {
  if (code === 1) return 192
  if (code < 6) return 576 << (code - 2)
  if (code < 8) return reader.unsigned(code === 6 ? 8 : 16) + 1
  return 256 << (code - 8)
}

/** By the code in the header; 0 stands for the rate of the stream. */
export const sampleRates = [0, 88_200, 176_400, 192_000, 8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000]

function sampleRateOf(code: number, reader: BitReader, info: FlacStreamInfo): number {
  if (code < 12) return sampleRates[code] || info.sampleRate
  const value = reader.unsigned(code === 12 ? 8 : 16)
  return code === 12 ? value * 1000 : code === 13 ? value : value * 10
}

function unpair(samples: FlacSamples[], pairing: FlacFrameHeader['pairing']): void {
  if (pairing === 'independent') return
  const [first, second] = samples
  const isWide = first instanceof Float64Array || second instanceof Float64Array
  for (let index = 0; index < first!.length; index++) {
    const a = first![index]!
    const b = second![index]!
    if (pairing === 'left-side') {
      second![index] = a - b
    } else if (pairing === 'side-right') {
      first![index] = a + b
    } else {
      const mid = isWide ? a * 2 + (b % 2 === 0 ? 0 : 1) : (a << 1) | (b & 1)
      first![index] = isWide ? (mid + b) / 2 : (mid + b) >> 1
      second![index] = isWide ? (mid - b) / 2 : (mid - b) >> 1
    }
  }
}

/** Coefficients of the fixed predictors, order 0 to 4 (RFC 9639, 9.2.5). */
export const fixedPredictors: readonly (readonly number[])[] = [[], [1], [2, -1], [3, -3, 1], [4, -6, 4, -1]]

function decodeSubframe(reader: BitReader, blockSize: number, storedBits: number): FlacSamples | undefined {
  const isReserved = reader.unsigned(1) === 1
  const type = reader.unsigned(6)
  const wasted = reader.unsigned(1) === 1 ? reader.unary() + 1 : 0
  const bits = storedBits - wasted
  if (isReserved || bits <= 0) return undefined
  const samples = bits > 32 ? new Float64Array(blockSize) : new Int32Array(blockSize)
  if (type === 0) {
    samples.fill(reader.signed(bits))
  } else if (type === 1) {
    for (let index = 0; index < blockSize; index++) samples[index] = reader.signed(bits)
  } else if (!decodePredicted(reader, samples, type, bits)) {
    return undefined
  }
  if (wasted > 0) for (let index = 0; index < blockSize; index++) samples[index]! *= 2 ** wasted
  return samples
}

function decodePredicted(reader: BitReader, samples: FlacSamples, type: number, bits: number): boolean {
  const isLinear = type >= 32
  const order = isLinear ? type - 31 : type - 8
  if (order < 0 || (!isLinear && order > 4) || order > samples.length) return false
  for (let index = 0; index < order; index++) samples[index] = reader.signed(bits)
  if (!isLinear) {
    if (!decodeResidual(reader, samples, order)) return false
    predict(samples, fixedPredictors[order]!, 0, bits)
    return true
  }
  const precision = reader.unsigned(4) + 1
  const shift = reader.signed(5)
  if (precision === 16 || shift < 0) return false
  const coefficients = Array.from({ length: order }, () => reader.signed(precision))
  if (!decodeResidual(reader, samples, order)) return false
  predict(samples, coefficients, shift, bits)
  return true
}

function decodeResidual(reader: BitReader, samples: FlacSamples, order: number): boolean {
  const method = reader.unsigned(2)
  if (method > 1) return false
  const parameterBits = method === 0 ? 4 : 5
  const escape = (1 << parameterBits) - 1
  const partitions = 1 << reader.unsigned(4)
  const partitionSize = samples.length / partitions
  if (!Number.isInteger(partitionSize) || partitionSize < order) return false
  let from = order
  for (let partition = 1; partition <= partitions; partition++) {
    const to = partition * partitionSize
    const parameter = reader.unsigned(parameterBits)
    if (parameter < escape) {
      reader.rice(samples, from, to, parameter)
    } else {
      const rawBits = reader.unsigned(5)
      for (let index = from; index < to; index++) samples[index] = reader.signed(rawBits)
    }
    if (reader.isOverrun) return false
    from = to
  }
  return true
}

/** Adds each sample's prediction from the previous ones, in 32-bit integers if no sum can overflow, else in doubles. */
function predict(samples: FlacSamples, coefficients: readonly number[], shift: number, bits: number): void {
  const order = coefficients.length
  const weights = Int32Array.from(coefficients)
  const largestSum = coefficients.reduce((sum, coefficient) => sum + Math.abs(coefficient), 0) * 2 ** (bits - 1)
  if (largestSum < 2 ** 31) {
    for (let index = order; index < samples.length; index++) {
      let sum = 0
      for (let back = 0; back < order; back++) sum = (sum + Math.imul(weights[back]!, samples[index - 1 - back]!)) | 0
      samples[index]! += sum >> shift
    }
    return
  }
  const scale = 2 ** -shift
  for (let index = order; index < samples.length; index++) {
    let sum = 0
    for (let back = 0; back < order; back++) sum += weights[back]! * samples[index - 1 - back]!
    samples[index]! += Math.floor(sum * scale)
  }
}
