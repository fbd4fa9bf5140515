import type { BitWriter } from '../bit-writer.js'
import { type Bands } from './band-limits.js'
import { type Coding, codingOf, largestValue, writeValues } from './huffman-coding.js'
import { type BlockType, blockTypes, type Granule } from './hybrid-filter.js'
import { applyScaleFactors, factorWidths, type ScaleFactors, scaleFactorsOf, unitGain } from './scale-factors.js'

/** The field of a granule's length has 12 bits. */
const mostBits = 4095
const mostGain = 255

/** Where the first two regions end where transforms change: the first three short bands or eight long ones, and all others. */
const switchedRegions = () => [36, 576] as const

/** One channel of a granule: finds what it takes at any gain, and writes it. */
export class GranuleCoder {
  readonly #granule: Granule
  #type: BlockType = blockTypes.long
  #bands: Bands | undefined
  #scaleFactors: ScaleFactors | undefined
  #leastGain = 0
  /** By gain. */
  readonly #codings = new Map<number, Coding>()
  #gain = 0
  #quantisedGain = -1

  constructor(granule: Granule) {
    this.#granule = granule
  }

  /** Takes the granule's values. */
  begin(type: BlockType, bands: Bands): void {
    const { values, compressed } = this.#granule
    this.#type = type
    this.#bands = bands
    if (bands.order) {
      const before = values.slice()
      for (let i = 0; i < values.length; i++) values[i] = before[bands.order[i]]
    }
    this.#scaleFactors = scaleFactorsOf(values, bands)
    this.#granule.compress()
    applyScaleFactors(compressed, this.#scaleFactors.factors, bands.ends)
    let largest = 0
    for (let i = 0; i < compressed.length; i++) if (compressed[i] > largest) largest = compressed[i]
    this.#leastGain = largest === 0 ? mostGain : gainFor(largest)
    this.#codings.clear()
    this.#quantisedGain = -1
  }

  /** Sets the gain, relative to the one that suits its loudness. Returns how many bits it takes then. */
  setGain(relative: number): number {
    const { bits, gain } = this.#facts.scaleFactors
    this.#gain = Math.min(mostGain, Math.max(this.#leastGain, gain + relative))
    while (this.#coding.bits + bits > mostBits) this.#leastGain = ++this.#gain
    return this.#coding.bits + bits
  }

  /** Whether a smaller gain changes nothing. */
  get isFinest(): boolean {
    return this.#gain <= this.#leastGain
  }

  /** Values that are not 0. */
  get codedValues(): number {
    return this.#coding.pairsEnd
  }

  /** Writes the 59 bits about it in the frame's side information. */
  writeSide(writer: BitWriter): void {
    const { bits, compress } = this.#facts.scaleFactors
    const coding = this.#coding
    writer.put(bits + coding.bits, 12)
    writer.put(coding.pairsEnd / 2, 9)
    writer.put(this.#gain, 8)
    writer.put(compress, 4)
    writer.put(this.#type === blockTypes.long ? 0 : 1, 1)
    if (this.#type === blockTypes.long) {
      for (const table of coding.tables) writer.put(table, 5)
      const [first, second] = regionBands(this.#facts.bands, coding.pairsEnd)
      writer.put(first - 1, 4)
      writer.put(second - 1, 3)
    } else {
      writer.put(this.#type, 2)
      writer.put(0, 1)
      for (const table of coding.tables.slice(0, 2)) writer.put(table, 5)
      // The gains of the three short transforms.
      writer.put(0, 9)
    }
    // No extra steps in the upper bands, and steps of 3 dB.
    writer.put(0, 2)
    writer.put(coding.fourTable, 1)
  }

  /** Writes scale factors and values. */
  writeMain(writer: BitWriter): void {
    const { scaleFactors, bands } = this.#facts
    const widths = factorWidths[scaleFactors.compress]
    for (let band = 0; band < scaleFactors.factors.length; band++)
      writer.put(scaleFactors.factors[band], widths[band < bands.firstWidths ? 0 : 1])
    const coding = this.#coding
    this.#quantise()
    writeValues(this.#granule.quantised, this.#granule.values, coding, writer)
  }

  get #coding(): Coding {
    let coding = this.#codings.get(this.#gain)
    if (!coding) {
      this.#quantise()
      const { bands } = this.#facts
      const regions = this.#type === blockTypes.long ? (end: number) => regionEnds(bands, end) : switchedRegions
      this.#codings.set(this.#gain, (coding = codingOf(this.#granule.quantised, regions)))
    }
    return coding
  }

  #quantise(): void {
    if (this.#quantisedGain === this.#gain) return
    this.#granule.quantise(2 ** (-0.1875 * (this.#gain - unitGain)))
    this.#quantisedGain = this.#gain
  }

  get #facts(): { bands: Bands; scaleFactors: ScaleFactors } {
    if (!this.#bands || !this.#scaleFactors) throw new Error('A granule was coded before it began.')
    return { bands: this.#bands, scaleFactors: this.#scaleFactors }
  }
}

/** The smallest gain at which a compressed value has a code. */
function gainFor(largest: number): number {
  return Math.max(0, Math.ceil(unitGain + Math.log2(largest / largestValue) / 0.1875) + 1)
}

/** How many bands the first two regions have: about a third each of those with pairs. */
function regionBands({ ends }: Bands, pairsEnd: number): readonly [number, number] {
  let bands = 0
  while (bands < ends.length && ends[bands] < pairsEnd) bands++
  const first = Math.min(16, Math.max(1, Math.round(bands * 0.35)))
  return [first, Math.min(8, Math.max(1, Math.round(bands * 0.3)))]
}

function regionEnds(bands: Bands, pairsEnd: number): readonly [number, number] {
  const [first, second] = regionBands(bands, pairsEnd)
  return [bands.ends[first - 1], bands.ends[Math.min(first + second, bands.ends.length) - 1]]
}
