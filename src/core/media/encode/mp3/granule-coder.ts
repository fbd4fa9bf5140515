import type { BitWriter } from '../bit-writer.js'
import type { Kernel } from '../../dsp/kernels/kernel.js'
import { codingFields } from '../../dsp/kernels/mp3-codes.js'
import type { Mp3Kernels } from '../../dsp/kernels/mp3-kernels.js'
import type { Bands } from './band-limits.js'
import { granuleSamples, type GranuleOffsets, type Offsets } from './frame-memory.js'
import { largestValue } from './huffman-coding.js'
import { type BlockType, blockTypes } from './hybrid-filter.js'
import { factorWidths, type ScaleFactors, scaleFactorsOf, unitGain } from './scale-factors.js'

/** The field of a granule's length has 12 bits. */
const mostBits = 4095
const mostGain = 255

/** The bands of a granule, and the offset of their ends. */
export interface StoredBands {
  bands: Bands
  ends: number
}

/** Codes one channel of a granule: finds how many bits it takes at any gain, and writes it. */
export class GranuleCoder {
  readonly #kernel: Kernel<Mp3Kernels>
  readonly #offsets: Offsets
  readonly #granule: GranuleOffsets
  readonly #values: Float32Array
  readonly #doubles: Float64Array
  readonly #coding: Int32Array
  #type: BlockType = blockTypes.long
  #stored!: StoredBands
  #scaleFactors!: ScaleFactors
  #leastGain = 0
  /** By gain: the bits of the values, -1 if unknown, and the number of values in pairs. */
  readonly #bits = new Int16Array(mostGain + 1)
  readonly #pairsEnds = new Int16Array(mostGain + 1)
  #gain = 0
  /** The gain at which the values are quantized and their codes chosen. */
  #codedGain = -1

  /** @param kernel its memory holds the tables of codes and of bands */
  constructor(kernel: Kernel<Mp3Kernels>, offsets: Offsets, granule: GranuleOffsets) {
    this.#kernel = kernel
    this.#offsets = offsets
    this.#granule = granule
    const { memory } = kernel
    this.#values = memory.subarray(granule.values, granule.values + granuleSamples)
    this.#doubles = new Float64Array(memory.buffer)
    this.#coding = new Int32Array(memory.buffer, 4 * granule.coding, codingFields.count)
  }

  /** Takes the granule's values. */
  begin(type: BlockType, stored: StoredBands): void {
    const { values, compressed } = this.#granule
    const { sums, scales } = this.#offsets
    const { bands, ends } = stored
    this.#type = type
    this.#stored = stored
    if (bands.order) {
      const before = this.#values.slice()
      for (let i = 0; i < granuleSamples; i++) this.#values[i] = before[bands.order[i]!]!
    }
    const count = bands.ends.length
    this.#kernel.bandSquares(values, ends, count, sums)
    this.#scaleFactors = scaleFactorsOf(this.#doubles.subarray(sums / 2, sums / 2 + count), bands)
    const { factors } = this.#scaleFactors
    // Values grow as the steps of their band become smaller.
    for (let band = 0; band < factors.length; band++) this.#doubles[scales / 2 + band] = 2 ** (0.375 * factors[band]!)
    this.#kernel.compressed(values, compressed, granuleSamples)
    const largest = this.#kernel.scaleBands(compressed, ends, scales, factors.length, granuleSamples)
    this.#leastGain = largest === 0 ? mostGain : gainFor(largest)
    this.#bits.fill(-1)
    this.#codedGain = -1
  }

  /** Sets the gain, relative to the gain that suits the loudness. Returns how many bits the granule then takes. */
  setGain(relative: number): number {
    const { bits, gain } = this.#scaleFactors
    this.#gain = Math.min(mostGain, Math.max(this.#leastGain, gain + relative))
    while (this.#codeBits() + bits > mostBits) this.#leastGain = ++this.#gain
    return this.#codeBits() + bits
  }

  /** Whether a smaller gain would change nothing. */
  get isFinest(): boolean {
    return this.#gain <= this.#leastGain
  }

  /** Number of values that are coded in pairs. */
  get codedValues(): number {
    return this.#pairsEnds[this.#gain]!
  }

  /** Writes the granule's 59 bits of the frame's side information. */
  writeSide(writer: BitWriter): void {
    this.#code()
    const { tables, fourTable } = codingFields
    const pairsEnd = this.#coding[codingFields.pairsEnd]!
    writer.put(this.#scaleFactors.bits + this.#codeBits(), 12)
    writer.put(pairsEnd / 2, 9)
    writer.put(this.#gain, 8)
    writer.put(this.#scaleFactors.compress, 4)
    writer.put(this.#type === blockTypes.long ? 0 : 1, 1)
    if (this.#type === blockTypes.long) {
      for (let region = 0; region < 3; region++) writer.put(this.#coding[tables + region]!, 5)
      const [first, second] = regionBands(this.#stored.bands, pairsEnd)
      writer.put(first - 1, 4)
      writer.put(second - 1, 3)
    } else {
      writer.put(this.#type, 2)
      writer.put(0, 1)
      for (let region = 0; region < 2; region++) writer.put(this.#coding[tables + region]!, 5)
      // The gains of the three short transforms.
      writer.put(0, 9)
    }
    // No extra steps in the upper bands, and steps of 3 dB.
    writer.put(0, 2)
    writer.put(this.#coding[fourTable]!, 1)
  }

  writeMain(writer: BitWriter): void {
    const { compress, factors } = this.#scaleFactors
    const widths = factorWidths[compress]!
    for (let band = 0; band < factors.length; band++)
      writer.put(factors[band]!, widths[band < this.#stored.bands.firstWidths ? 0 : 1])
    this.#code()
    const { quantized, values, coding } = this.#granule
    const { codeTables, frame } = this.#offsets
    writer.bit = this.#kernel.writeValues(quantized, values, this.#regions, codeTables, coding, frame, writer.bit)
  }

  /** Bits of the values at this gain. */
  #codeBits(): number {
    if (this.#bits[this.#gain]! < 0) this.#code()
    return this.#bits[this.#gain]!
  }

  /** Quantizes the values and chooses their codes. */
  #code(): void {
    if (this.#codedGain === this.#gain) return
    const { compressed, quantized, coding } = this.#granule
    const { codeTables } = this.#offsets
    this.#kernel.quantize(compressed, 2 ** (-0.1875 * (this.#gain - unitGain)), quantized, granuleSamples)
    this.#bits[this.#gain] = this.#kernel.chooseCodes(quantized, granuleSamples, this.#regions, codeTables, coding)
    this.#pairsEnds[this.#gain] = this.#coding[codingFields.pairsEnd]!
    this.#codedGain = this.#gain
  }

  get #regions(): number {
    return this.#type === blockTypes.long ? this.#offsets.longRegions : this.#offsets.switchedRegions
  }
}

/** Fills in the ends of the first two regions for each end of the pairs (an even number), two integers each. */
export function writeRegions(memory: Float32Array<ArrayBuffer>, offsets: Offsets, bands: Bands): void {
  const integers = new Int32Array(memory.buffer)
  for (let pairsEnd = 0; pairsEnd <= granuleSamples; pairsEnd += 2) {
    for (const [offset, ends] of [
      [offsets.longRegions, regionEnds(bands, pairsEnd)],
      [offsets.switchedRegions, switchedRegions],
    ] as const)
      for (let region = 0; region < 2; region++)
        integers[offset + pairsEnd + region] = Math.min(ends[region]!, pairsEnd)
  }
}

/**
 * Ends of the first two regions where transforms change: the first three short bands or eight long ones, and all
 * others.
 */
const switchedRegions = [36, granuleSamples] as const

/** The smallest gain at which a compressed value has a code. */
function gainFor(largest: number): number {
  return Math.max(0, Math.ceil(unitGain + Math.log2(largest / largestValue) / 0.1875) + 1)
}

/** Numbers of bands in the first two regions: about a third each of the bands with pairs. */
function regionBands({ ends }: Bands, pairsEnd: number): readonly [number, number] {
  let bands = 0
  while (bands < ends.length && ends[bands]! < pairsEnd) bands++
  const first = Math.min(16, Math.max(1, Math.round(bands * 0.35)))
  return [first, Math.min(8, Math.max(1, Math.round(bands * 0.3)))]
}

function regionEnds(bands: Bands, pairsEnd: number): readonly [number, number] {
  const [first, second] = regionBands(bands, pairsEnd)
  return [bands.ends[first - 1]!, bands.ends[Math.min(first + second, bands.ends.length) - 1]!]
}
