import type { Kernel } from '../../dsp/kernels/kernel.js'
import type { Mp3Kernels } from '../../dsp/kernels/mp3-kernels.js'
import { granuleSamples, historySamples, matrixColumns, type Offsets, rowFloats } from './frame-memory.js'

/** Transforms of a granule: one long, three short, or the transitions between them. */
export const blockTypes = { long: 0, start: 1, short: 2, stop: 3 } as const
export type BlockType = (typeof blockTypes)[keyof typeof blockTypes]

/** Samples are limited to this: beyond it there is nothing to hear. */
const loudest = 8

/** Writes the tables that the filters of all channels share. */
export function writeFilterTables(memory: Float32Array<ArrayBuffer>, offsets: Offsets): void {
  memory.set(prototypeFilter(), offsets.window)
  for (let i = 0; i < 32; i++)
    for (let subband = 0; subband < 16; subband++)
      memory[offsets.cosines + 16 * i + subband] = Math.cos(((2 * subband + 1) * i * Math.PI) / 64)
  for (const type of Object.values(blockTypes)) memory.set(transformMatrix(type), matrixAt(offsets, type))
  new Float64Array(memory.buffer).set([...aliasCosines, ...aliasSines], offsets.aliasFactors / 2)
}

/** The filters of one channel: 32 subbands, and a transform of each (ISO/IEC 11172-3, C.1.3 and 2.4.3.4.10). */
export class HybridFilter {
  readonly #kernel: Kernel<Mp3Kernels>
  readonly #doubles: Float64Array
  readonly #offsets: Offsets
  readonly #channel: Offsets['channels'][number]

  /** @param kernel its memory holds the tables of the filters */
  constructor(kernel: Kernel<Mp3Kernels>, offsets: Offsets, channel: number) {
    this.#kernel = kernel
    this.#doubles = new Float64Array(kernel.memory.buffer)
    this.#offsets = offsets
    this.#channel = offsets.channels[channel]!
  }

  /**
   * Takes the samples of the granule after the next. Returns energies of its three parts, without the lowest subbands.
   */
  add(samples: Float32Array): [number, number, number] {
    const { memory } = this.#kernel
    const { scratch, window, cosines, sums } = this.#offsets
    const { rows, samples: at } = this.#channel
    memory.copyWithin(at, at + granuleSamples, at + granuleSamples + historySamples)
    memory.set(samples, at + historySamples)
    this.#kernel.limited(at + historySamples, loudest, granuleSamples)
    memory.copyWithin(rows, rows + rowFloats, rows + 3 * rowFloats)
    const next = rows + 2 * rowFloats
    this.#kernel.subbandRows(at, window, cosines, scratch, next, 18)
    this.#kernel.energies(next, sums)
    return [this.#doubles[sums / 2]!, this.#doubles[sums / 2 + 1]!, this.#doubles[sums / 2 + 2]!]
  }

  /** Writes the values of the granule before the one that was added last. */
  transform(type: BlockType, index: number): void {
    const { values } = this.#channel.granules[index]!
    this.#kernel.transform(this.#channel.rows, matrixAt(this.#offsets, type), values)
    if (type !== blockTypes.short) this.#kernel.reduceAliases(values, this.#offsets.aliasFactors)
  }
}

function matrixAt(offsets: Offsets, type: BlockType): number {
  return offsets.matrices + type * 36 * matrixColumns
}

/** Butterflies between neighbouring subbands (table B.9). */
const aliasFactors = [-0.6, -0.535, -0.33, -0.185, -0.095, -0.041, -0.0142, -0.0037]
const aliasCosines = aliasFactors.map((factor) => 1 / Math.sqrt(1 + factor * factor))
const aliasSines = aliasFactors.map((factor) => factor / Math.sqrt(1 + factor * factor))

/** Window and cosine transform of a subband's 36 values, in rows of 20. */
function transformMatrix(type: BlockType): Float32Array {
  const matrix = new Float32Array(36 * matrixColumns)
  const rise = (n: number, length: number) => Math.sin((Math.PI / (2 * length)) * (n + 0.5))
  for (let n = 0; n < 36; n++) {
    for (let k = 0; k < 18; k++) {
      if (type === blockTypes.short) {
        const [window, line] = [Math.floor(k / 6), k % 6]
        const m = n - 6 - 6 * window
        if (m >= 0 && m < 12)
          matrix[n * matrixColumns + k] = (rise(m, 6) * Math.cos((Math.PI / 24) * (2 * m + 7) * (2 * line + 1))) / 3
        continue
      }
      const m = type === blockTypes.stop ? 35 - n : n
      let factor = rise(m, 18)
      if (type !== blockTypes.long && m >= 18) factor = m < 24 ? 1 : m < 30 ? rise(m - 18, 6) : 0
      matrix[n * matrixColumns + k] = (factor * Math.cos((Math.PI / 72) * (2 * n + 19) * (2 * k + 1))) / 9
    }
  }
  return matrix
}

/** The window of the filter bank from its last value to its first, from half of it (table C.1, in units of 2^-21). */
function prototypeFilter(): Float32Array {
  const window = new Float32Array(512)
  for (let i = 0; i <= 256; i++) {
    const value = halfWindow[i]! / 2 ** 21
    window[511 - i] = value
    if (i > 0) window[i - 1] = i % 64 === 0 ? value : -value
  }
  return window
}

// oxfmt-ignore
const halfWindow = [
  0, -1, -1, -1, -1, -1, -1, -2, -2, -2, -2, -3, -3, -4, -4, -5, -5, -6, -7, -7, -8, -9, -10, -11, -13, -14, -16, -17, -19, -21, -24, -26,
  -29, -31, -35, -38, -41, -45, -49, -53, -58, -63, -68, -73, -79, -85, -91, -97, -104, -111, -117, -125, -132, -139, -147, -154, -161, -169,
  -176, -183, -190, -196, -202, -208,
  213, 218, 222, 225, 227, 228, 228, 227, 224, 221, 215, 208, 200, 189, 177, 163, 146, 127, 106, 83, 57, 29, -2, -36, -72, -111, -153, -197,
  -244, -294, -347, -401, -459, -519, -581, -645, -711, -779, -848, -919, -991, -1064, -1137, -1210, -1283, -1356, -1428, -1498, -1567, -1634,
  -1698, -1759, -1817, -1870, -1919, -1962, -2001, -2032, -2057, -2075, -2085, -2087, -2080, -2063,
  2037, 2000, 1952, 1893, 1822, 1739, 1644, 1535, 1414, 1280, 1131, 970, 794, 605, 402, 185, -45, -288, -545, -814, -1095, -1388, -1692, -2006,
  -2330, -2663, -3004, -3351, -3705, -4063, -4425, -4788, -5153, -5517, -5879, -6237, -6589, -6935, -7271, -7597, -7910, -8209, -8491, -8755,
  -8998, -9219, -9416, -9585, -9727, -9838, -9916, -9959, -9966, -9935, -9863, -9750, -9592, -9389, -9139, -8840, -8492, -8092, -7640, -7134,
  6574, 5959, 5288, 4561, 3776, 2935, 2037, 1082, 70, -998, -2122, -3300, -4533, -5818, -7154, -8540, -9975, -11455, -12980, -14548, -16155,
  -17799, -19478, -21189, -22929, -24694, -26482, -28289, -30112, -31947, -33791, -35640, -37489, -39336, -41176, -43006, -44821, -46617,
  -48390, -50137, -51853, -53534, -55178, -56778, -58333, -59838, -61289, -62684, -64019, -65290, -66494, -67629, -68692, -69679, -70590,
  -71420, -72169, -72835, -73415, -73908, -74313, -74630, -74856, -74992,
  75038,
]
