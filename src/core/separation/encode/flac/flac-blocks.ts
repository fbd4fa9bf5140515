import { crc16, crc8 } from '../../decode/flac-checksum.js'
import { createFlacKernels, maxOrder } from '../../dsp/kernels/flac-kernels.js'
import { BitWriter } from '../bit-writer.js'
import { fixedPredictor, linearPredictor, type Predictor } from './linear-prediction.js'
import { maxPartitions, mostPartitions, ricePartitions, type RicePartitions } from './rice-partitions.js'

/** Samples per channel of every block but the last. */
export const blockSamples = 4096

export interface FlacFormat {
  sampleRate: number
  channels: number
  bits: 16 | 24
}

/** A channel of a block, or the mean or the difference of two, and how it may be predicted. */
interface Signal {
  /** Index of its plane, and of its window and sums. */
  plane: number
  bits: number
}

type Coded =
  | { kind: 'constant' }
  | { kind: 'verbatim' }
  | { kind: 'predicted'; predictor: Predictor; residual: number; partitions: RicePartitions }

/** Doubles before and after a plane: zeros, which the kernels read and partly write. */
const margin = 8

/**
 * Encodes blocks as FLAC frames, with the means of the reference encoder at its usual level: four ways to code two channels, fixed and
 * linear predictors of up to eight samples, and Rice codes in up to 32 partitions. The frames are the same with and without SIMD.
 */
export class FlacBlocks {
  readonly #format: FlacFormat
  readonly #kernel
  readonly #doubles: Float64Array
  readonly #offsets
  readonly #pairs: Int16Array
  readonly #frame: Uint8Array
  #windowLength = 0
  #blocks = 0

  constructor(format: FlacFormat) {
    this.#format = format
    this.#offsets = offsetsOf(format.channels)
    this.#kernel = createFlacKernels(this.#offsets.end)
    const { buffer } = this.#kernel.memory
    this.#doubles = new Float64Array(buffer)
    this.#pairs = new Int16Array(buffer, 4 * this.#offsets.pairs, 2 * blockSamples)
    this.#frame = new Uint8Array(buffer, 4 * this.#offsets.frame, maxFrameBytes(format.channels))
  }

  /**
   * Takes samples of the next block.
   *
   * @param samples one of each channel, side by side; at most as many as the block has room for
   * @param from how many samples per channel the block holds already
   */
  put(samples: ArrayLike<number>, from: number): void {
    const { channels } = this.#format
    const count = samples.length / channels
    if (channels === 2 && samples instanceof Int16Array) {
      const { pairs, plane } = this.#offsets
      this.#pairs.set(samples)
      this.#kernel.separatePairs(pairs, plane(0) + 2 * from, plane(1) + 2 * from, count)
      return
    }
    for (let channel = 0; channel < channels; channel++) {
      let at = this.#offsets.plane(channel) / 2 + from
      for (let i = channel; i < samples.length; i += channels) this.#doubles[at++] = samples[i]
    }
  }

  /**
   * The frame of the samples in the planes. It is valid until the next call.
   *
   * @param sampleCount at most `blockSamples`, and fewer only in the last block
   */
  encode(sampleCount: number): Uint8Array {
    const { channels } = this.#format
    for (let channel = 0; channel < channels; channel++) this.#fillUp(channel, sampleCount)
    this.#prepareWindow(sampleCount)
    const { assignment, signals } = this.#assigned(sampleCount)
    const writer = new BitWriter(this.#frame)
    this.#writeHeader(writer, assignment, sampleCount)
    for (const signal of signals) this.#writeSubframe(writer, signal, sampleCount)
    const length = writer.align()
    writer.put(crc16(this.#frame, 0, length), 16)
    this.#blocks++
    return this.#frame.subarray(0, length + 2)
  }

  /** Zeros after a shorter block: the kernels read some samples more. */
  #fillUp(plane: number, sampleCount: number): void {
    const at = this.#offsets.plane(plane) / 2
    this.#doubles.fill(0, at + sampleCount, at + sampleCount + margin)
  }

  /** Tukey's, half of it flat. */
  #prepareWindow(sampleCount: number): void {
    if (this.#windowLength === sampleCount) return
    this.#windowLength = sampleCount
    const slope = sampleCount >> 2
    const at = this.#offsets.window / 2
    for (let i = 0; i < sampleCount; i++) {
      const fromEnd = Math.min(i, sampleCount - 1 - i)
      this.#doubles[at + i] = fromEnd < slope ? 0.5 - 0.5 * Math.cos((Math.PI * (fromEnd + 0.5)) / slope) : 1
    }
  }

  /** How the channels are coded (RFC 9639, 9.1.3), and what is. */
  #assigned(sampleCount: number): { assignment: number; signals: Signal[] } {
    const { channels, bits } = this.#format
    const plain = Array.from({ length: channels }, (_, plane) => ({ plane, bits }))
    if (channels !== 2) {
      for (const { plane } of plain) this.#sumDifferences(plane, sampleCount)
      return { assignment: channels - 1, signals: plain }
    }
    const [left, right] = plain
    const middle = { plane: 2, bits }
    const side = { plane: 3, bits: bits + 1 }
    const [l, r, m, s] = [0, 1, 2, 3].map(this.#offsets.plane)
    this.#kernel.middleAndSide(l, r, m, s, sampleCount)
    const [leftBits, rightBits, middleBits, sideBits] = [0, 1, 2, 3].map((plane) => {
      this.#fillUp(plane, sampleCount)
      return Math.log2(Math.min(...this.#sumDifferences(plane, sampleCount)) + 1)
    })
    const ways = [
      { assignment: 1, signals: [left, right], bits: leftBits + rightBits },
      { assignment: 8, signals: [left, side], bits: leftBits + sideBits },
      { assignment: 9, signals: [side, right], bits: sideBits + rightBits },
      { assignment: 10, signals: [middle, side], bits: middleBits + sideBits },
    ]
    return ways.reduce((best, way) => (way.bits < best.bits ? way : best))
  }

  #sumDifferences(plane: number, sampleCount: number): Float64Array {
    const to = this.#offsets.differenceSums(plane)
    this.#kernel.differenceSums(this.#offsets.plane(plane), to, sampleCount)
    return this.#doubles.subarray(to / 2, to / 2 + 5)
  }

  #writeHeader(writer: BitWriter, assignment: number, sampleCount: number): void {
    const { sampleRate, bits } = this.#format
    // Sync code and a fixed block size.
    writer.put(0xfff8, 16)
    writer.put(sampleCount === blockSamples ? 12 : 7, 4)
    writer.put(sampleRateCodes[sampleRate] ?? 0, 4)
    writer.put(assignment, 4)
    writer.put(bits === 16 ? 4 : 6, 3)
    writer.put(0, 1)
    for (const byte of codedNumber(this.#blocks)) writer.put(byte, 8)
    if (sampleCount !== blockSamples) writer.put(sampleCount - 1, 16)
    writer.put(crc8(this.#frame, 0, writer.bit / 8), 8)
  }

  #writeSubframe(writer: BitWriter, signal: Signal, sampleCount: number): void {
    const coded = this.#coded(signal, sampleCount)
    const samples = this.#doubles.subarray(this.#offsets.plane(signal.plane) / 2)
    switch (coded.kind) {
      case 'constant':
        writer.put(0, 8)
        return writer.put(samples[0], signal.bits)
      case 'verbatim':
        writer.put(1 << 1, 8)
        for (let i = 0; i < sampleCount; i++) writer.put(samples[i], signal.bits)
        return
      case 'predicted': {
        const { coefficients, shift, precision } = coded.predictor
        const order = coefficients.length
        writer.put((precision > 0 ? 32 + order - 1 : 8 + order) << 1, 8)
        for (let i = 0; i < order; i++) writer.put(samples[i], signal.bits)
        if (precision > 0) {
          writer.put(precision - 1, 4)
          writer.put(shift, 5)
          for (const coefficient of coefficients) writer.put(coefficient, precision)
        }
        return this.#writeResidual(writer, coded, sampleCount)
      }
      default:
        return coded satisfies never
    }
  }

  #writeResidual(writer: BitWriter, coded: Coded & { kind: 'predicted' }, sampleCount: number): void {
    const { predictor, partitions, residual } = coded
    const order = predictor.coefficients.length
    const wide = this.#maxParameter > 14
    writer.put(wide ? 1 : 0, 2)
    writer.put(partitions.order, 4)
    const length = sampleCount >> partitions.order
    for (const [index, parameter] of partitions.parameters.entries()) {
      writer.put(parameter, wide ? 5 : 4)
      const skipped = index === 0 ? order : 0
      const from = residual + index * length + skipped
      writer.bit = this.#kernel.writeRice(from, length - skipped, parameter, this.#offsets.frame, writer.bit)
    }
  }

  get #maxParameter(): number {
    return this.#format.bits === 16 ? 14 : 30
  }

  /** The shortest way to code a signal. */
  #coded({ plane, bits }: Signal, sampleCount: number): Coded {
    const { differenceSums, autocorrelation, window, windowed, residuals } = this.#offsets
    const from = this.#offsets.plane(plane)
    const sums = this.#doubles.subarray(differenceSums(plane) / 2, differenceSums(plane) / 2 + 5)
    if (this.#isConstant(from, sampleCount)) return { kind: 'constant' }
    let best: { coded: Coded; bits: number } = { coded: { kind: 'verbatim' }, bits: bits * sampleCount }
    if (sampleCount <= maxOrder) return best.coded
    this.#kernel.autocorrelate(from, window, windowed, autocorrelation, sampleCount)
    const lags = this.#doubles.subarray(autocorrelation / 2, autocorrelation / 2 + maxOrder + 1)
    const block = { sampleCount, sampleBits: bits }
    const predictors = [
      fixedPredictor(sums, block),
      linearPredictor(lags, block, this.#format.bits === 16 ? 12 : 15),
    ].filter((predictor) => predictor !== undefined)
    const leastBits = Math.min(...predictors.map((predictor) => predictor.bits))
    for (const [index, predictor] of predictors.entries()) {
      if (predictor.bits > leastBits + sampleCount * estimateErrorBits[this.#format.bits]) continue
      const coded = this.#predicted(predictor, from, residuals[index], sampleCount)
      if (!coded) continue
      const order = predictor.coefficients.length
      const headBits = order * bits + (predictor.precision > 0 ? 9 + order * predictor.precision : 0) + 6
      if (headBits + coded.partitions.bits < best.bits) best = { coded, bits: headBits + coded.partitions.bits }
    }
    return best.coded
  }

  #predicted(predictor: Predictor, from: number, residual: number, sampleCount: number) {
    const { coefficients, shift } = predictor
    const order = coefficients.length
    this.#doubles.set(coefficients, this.#offsets.coefficients / 2)
    const largest = this.#kernel.residual(from, this.#offsets.coefficients, order, 2 ** -shift, residual, sampleCount)
    if (largest >= largestResidual) return undefined
    const parts = mostPartitions(sampleCount, order)
    const { foldedSums } = this.#offsets
    this.#kernel.foldedSums(residual, order, sampleCount / parts, parts, foldedSums)
    const sums = this.#doubles.subarray(foldedSums / 2, foldedSums / 2 + parts)
    const partitions = ricePartitions(sums, sampleCount, order, this.#maxParameter)
    return { kind: 'predicted' as const, predictor, residual, partitions }
  }

  #isConstant(from: number, sampleCount: number): boolean {
    const first = this.#doubles[from / 2]
    for (let i = 1; i < sampleCount; i++) if (this.#doubles[from / 2 + i] !== first) return false
    return true
  }
}

/**
 * What is expected of a predictor may be wrong by so many bits a sample: beyond that, only the better one is tried. With 24 bits
 * the rounding of the coefficients, which is not expected, may matter more than the music.
 */
const estimateErrorBits = { 16: 0.1, 24: Infinity }

/** Folded, it must fit in 32 bits. */
const largestResidual = 2 ** 30

const sampleRateCodes: Record<number, number> = {
  88_200: 1,
  176_400: 2,
  192_000: 3,
  8_000: 4,
  16_000: 5,
  22_050: 6,
  24_000: 7,
  32_000: 8,
  44_100: 9,
  48_000: 10,
  96_000: 11,
}

/** As UTF-8 codes a character, up to 36 bits (RFC 9639, 9.1.5). */
function codedNumber(value: number): number[] {
  if (value < 0x80) return [value]
  const bytes: number[] = []
  let rest = value
  // The first byte holds one bit less with each byte that follows.
  for (let room = 0x40; rest >= room; room >>= 1) {
    bytes.unshift(0x80 | (rest & 0x3f))
    rest = Math.floor(rest / 64)
    if (rest < room >> 1) break
  }
  return [((0xff00 >> (bytes.length + 1)) & 0xff) | rest, ...bytes]
}

function maxFrameBytes(channels: number): number {
  // Samples of 25 bits; estimates may be too small by a part of a bit for each.
  return channels * blockSamples * 4 + 1024
}

/** Places in the kernel's memory, in floats. */
function offsetsOf(channels: number) {
  const doublesOf = (count: number) => 2 * count
  const planeFloats = doublesOf(blockSamples + 2 * margin)
  const planes = channels === 2 ? 4 : channels
  let at = 0
  const take = (floats: number) => {
    const start = at
    at += floats
    return start
  }
  const first = take(planes * planeFloats) + doublesOf(margin)
  const window = take(doublesOf(blockSamples))
  const windowed = take(planeFloats) + doublesOf(margin)
  const sums = take(doublesOf(5 * planes))
  const autocorrelation = take(doublesOf(maxOrder + 1))
  const coefficients = take(doublesOf(maxOrder))
  const foldedSums = take(doublesOf(maxPartitions))
  const pairs = take(blockSamples)
  const residuals = [take(blockSamples + margin), take(blockSamples + margin)] as const
  const frame = take(maxFrameBytes(channels) / 4)
  return {
    plane: (index: number) => first + index * planeFloats,
    window,
    windowed,
    differenceSums: (plane: number) => sums + doublesOf(5 * plane),
    autocorrelation,
    coefficients,
    foldedSums,
    pairs,
    residuals,
    frame,
    end: at,
  }
}
