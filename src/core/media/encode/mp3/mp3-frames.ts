import { BitWriter } from '../bit-writer.js'
import type { Kernel } from '../../dsp/kernels/kernel.js'
import { createMp3Kernels, type Mp3Kernels } from '../../dsp/kernels/mp3-kernels.js'
import { longBands, shortBands } from './band-limits.js'
import { blockChoice } from './block-choice.js'
import { frameBytes, granuleSamples, offsetsOf, type Offsets } from './frame-memory.js'
import { GranuleCoder, type StoredBands, writeRegions } from './granule-coder.js'
import { writeCodeTables } from './huffman-coding.js'
import { mp3Rates } from '../output-format.js'
import { type BlockType, blockTypes, HybridFilter, writeFilterTables } from './hybrid-filter.js'

export const frameSamples = 2 * granuleSamples
/**
 * Samples that the filters add before the audio, as players count them: without the 529 of a decoder. They include one
 * granule of look-ahead.
 */
export const encoderDelay = 1104

/** The highest bit rate of the format, so that no frame needs bits of another one. */
const bitrate = 320_000
const bitrateCode = 14

// Not LAME (wasm-media-encoders): LGPL, it takes five times as long, and its files lose their start and length.

// Code that runs for every frame uses plain loops: iterators, closures and destructured arrays make functions so
// large that compiling them took as long as encoding a song.

/** Encodes frames of 320 kbit/s (ISO/IEC 11172-3, layer III). */
export class Mp3Frames {
  readonly #sampleRate: number
  readonly #offsets: Offsets
  readonly #kernel: Kernel<Mp3Kernels>
  readonly #sums: Float64Array
  readonly #filters: HybridFilter[]
  readonly #coders: GranuleCoder[]
  readonly #choice: ReturnType<typeof blockChoice>
  readonly #bands: { long: StoredBands; short: StoredBands }
  readonly #frame: Uint8Array
  /** The gain at which the search ended in the previous frame. */
  #gain = 0
  /** Fractions of a byte by which the frames so far are too short. */
  #owedBytes = 0

  /** @param sampleRate one of `mp3Rates` */
  constructor({ sampleRate, channels }: { sampleRate: number; channels: 1 | 2 }) {
    this.#sampleRate = sampleRate
    const offsets = (this.#offsets = offsetsOf(channels))
    const kernel = (this.#kernel = createMp3Kernels(offsets.end))
    const { memory } = kernel
    this.#sums = new Float64Array(memory.buffer, 4 * offsets.sums)
    this.#frame = frameBytes(memory, offsets)
    this.#filters = offsets.channels.map((_, channel) => new HybridFilter(kernel, offsets, channel))
    this.#coders = [0, 1].flatMap((granule) =>
      offsets.channels.map(({ granules }) => new GranuleCoder(kernel, offsets, granules[granule]!)),
    )
    this.#choice = blockChoice(channels)
    const [long, short] = [longBands(sampleRate), shortBands(sampleRate)]
    this.#bands = { long: { bands: long, ends: offsets.longEnds }, short: { bands: short, ends: offsets.shortEnds } }
    writeFilterTables(memory, offsets)
    writeCodeTables(memory, offsets.codeTables)
    writeRegions(memory, offsets, long)
    for (const { bands, ends } of Object.values(this.#bands)) new Int32Array(memory.buffer).set(bands.ends, ends)
  }

  /**
   * @param planes one per channel, of `frameSamples`
   * @returns a frame of the audio `encoderDelay` samples earlier, valid until the next call
   */
  encode(planes: readonly Float32Array[]): Uint8Array {
    const first = this.#transform(planes, 0)
    const second = this.#transform(planes, 1)
    const isMiddleAndSide = this.#useMiddleAndSide()
    for (let index = 0; index < this.#coders.length; index++) {
      const type = index < this.#filters.length ? first : second
      this.#coders[index]!.begin(type, type === blockTypes.short ? this.#bands.short : this.#bands.long)
    }
    const bytes = this.#nextBytes()
    const sideBytes = this.#filters.length === 1 ? 17 : 32
    this.#findGains(8 * (bytes - 4 - sideBytes))
    this.#write(bytes, isMiddleAndSide)
    return this.#frame.subarray(0, bytes)
  }

  /** Takes a granule of all channels, and transforms the previous one. */
  #transform(planes: readonly Float32Array[], granule: number): BlockType {
    const start = granule * granuleSamples
    const energies: [number, number, number][] = []
    for (let channel = 0; channel < planes.length; channel++)
      energies.push(this.#filters[channel]!.add(planes[channel]!.subarray(start, start + granuleSamples)))
    const type = this.#choice(energies)
    for (let channel = 0; channel < planes.length; channel++) this.#filters[channel]!.transform(type, granule)
    return type
  }

  /**
   * Finds the finest steps with which all granules fit. `gain` is the sum of their gains, which differ by one at most.
   */
  #findGains(room: number): void {
    let tooFine = -Infinity
    let fits = Infinity
    let gain = this.#gain
    while (fits - tooFine > 1) {
      const over = this.#bitsAt(gain) - room
      if (over > 0) tooFine = gain
      else fits = gain
      /** Approximate change of the sum, in bits, if the gain changes by one. */
      const step = Math.max(20, (0.1875 * this.#codedValues) / this.#coders.length)
      if (over <= 0 && (-over < 0.7 * step || this.#isFinest)) break
      const guess = gain + (over > 0 ? Math.ceil(over / step) : Math.min(-1, Math.ceil(over / step)))
      gain = Math.min(fits - 1, Math.max(tooFine + 1, guess))
    }
    this.#gain = fits
    this.#bitsAt(fits)
  }

  #bitsAt(gain: number): number {
    let bits = 0
    for (let index = 0; index < this.#coders.length; index++)
      bits += this.#coders[index]!.setGain(Math.floor((gain + index) / this.#coders.length))
    return bits
  }

  /** Summed over all granules. */
  get #codedValues(): number {
    let sum = 0
    for (let index = 0; index < this.#coders.length; index++) sum += this.#coders[index]!.codedValues
    return sum
  }

  get #isFinest(): boolean {
    for (let index = 0; index < this.#coders.length; index++) if (!this.#coders[index]!.isFinest) return false
    return true
  }

  /** Replaces the channels by their mid and side, if those take fewer bits. */
  #useMiddleAndSide(): boolean {
    if (this.#filters.length === 1) return false
    const { sums } = this.#offsets
    const { bands, ends } = this.#bands.long
    const left = this.#offsets.channels[0]!.granules
    const right = this.#offsets.channels[1]!.granules
    let difference = 0
    for (let granule = 0; granule < 2; granule++) {
      this.#kernel.stereoSums(left[granule]!.values, right[granule]!.values, ends, bands.ends.length, sums)
      difference += savedBits(this.#sums, bands.ends)
    }
    if (difference <= 0) return false
    for (let granule = 0; granule < 2; granule++)
      this.#kernel.middleAndSide(left[granule]!.values, right[granule]!.values, granuleSamples)
    return true
  }

  /** Adds a byte from time to time to keep the bit rate where a frame is not a whole number of bytes. */
  #nextBytes(): number {
    const exact = ((bitrate / 8) * frameSamples) / this.#sampleRate
    this.#owedBytes += exact - Math.floor(exact)
    const isPadded = this.#owedBytes >= 1
    if (isPadded) this.#owedBytes--
    return Math.floor(exact) + (isPadded ? 1 : 0)
  }

  #write(bytes: number, isMiddleAndSide: boolean): void {
    const isMono = this.#filters.length === 1
    this.#frame.fill(0)
    const writer = new BitWriter(this.#frame)
    // Sync word, MPEG-1, layer III, no checksum.
    writer.put(0xfffb, 16)
    writer.put(bitrateCode, 4)
    writer.put(mp3Rates.indexOf(this.#sampleRate), 2)
    writer.put(bytes > Math.floor(((bitrate / 8) * frameSamples) / this.#sampleRate) ? 1 : 0, 1)
    writer.put(0, 1)
    // Joint stereo with mid and side or without, or mono.
    writer.put(isMono ? 3 : 1, 2)
    writer.put(isMiddleAndSide ? 2 : 0, 2)
    writer.put(0, 4)
    // The values begin in this frame, and no granule reuses the scale factors of the one before.
    writer.put(0, 9)
    writer.put(0, isMono ? 5 + 4 : 3 + 8)
    for (const coder of this.#coders) coder.writeSide(writer)
    for (const coder of this.#coders) coder.writeMain(writer)
  }
}

/**
 * Estimates how many bits the mid and the side save compared with the channels, by the levels of their bands.
 *
 * @param sums of squares of the left and of the right, and of their products, for each band
 */
function savedBits(sums: Float64Array, ends: readonly number[]): number {
  // Below the smallest step of 16 bits there is nothing to save.
  const least = 2 ** -34
  let saved = 0
  let start = 0
  for (let band = 0; band < ends.length; band++) {
    const end = ends[band]!
    const ll = sums[3 * band]!
    const rr = sums[3 * band + 1]!
    const lr = sums[3 * band + 2]!
    const width = end - start
    const mean = (ll + rr) / 2
    const floor = least * width
    saved += width * Math.log2(((ll + floor) * (rr + floor)) / ((mean + lr + floor) * (mean - lr + floor)))
    start = end
  }
  return saved
}
