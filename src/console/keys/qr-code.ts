/** By version, from 1: check bytes of each block, and how many blocks there are (ISO/IEC 18004, level L). */
const checkBytes = [7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28, 28, 28, 30, 30, 26]
const blockCounts = [1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12]

/** A square of modules; true is dark. */
export type QrCode = readonly (readonly boolean[])[]

/**
 * A QR code of the text (UTF-8), with the least error correction, for a screen. @throws RangeError above 1,273 bytes
 */
export function qrCode(text: string): QrCode {
  const bytes = new TextEncoder().encode(text)
  const version = checkBytes.findIndex((_, index) => dataBytesOf(index + 1) >= bytes.length + (index < 9 ? 2 : 3)) + 1
  if (version === 0) throw new RangeError('The text is too long for a QR code.')
  const grid = new Grid(version)
  grid.fill(withChecks(version, framed(bytes, version)))
  return grid.modules
}

/** Capacity of a version, in bytes. */
function bytesOf(version: number): number {
  let modules = (16 * version + 128) * version + 64
  if (version >= 2) {
    const marks = Math.floor(version / 7) + 2
    modules -= (25 * marks - 10) * marks - 55
  }
  return Math.floor((version >= 7 ? modules - 36 : modules) / 8)
}

function dataBytesOf(version: number): number {
  return bytesOf(version) - (checkBytes[version - 1] ?? 0) * (blockCounts[version - 1] ?? 0)
}

/** Puts the kind of content (bytes) and their number before the bytes, and pads them. */
function framed(bytes: Uint8Array, version: number): Uint8Array {
  const data = new Uint8Array(dataBytesOf(version))
  const head = version < 10 ? [4, bytes.length] : [4, bytes.length >> 8, bytes.length]
  // Everything is shifted by half a byte, after the four bits of the kind.
  const halves = [head[0] ?? 0, ...[...head.slice(1), ...bytes].flatMap((byte) => [(byte >> 4) & 15, byte & 15]), 0]
  for (let at = 0; at < data.length; at++) {
    const isPadding = 2 * at >= halves.length
    const padding = (at - Math.ceil(halves.length / 2)) % 2 === 0 ? 0xec : 0x11
    data[at] = isPadding ? padding : ((halves[2 * at] ?? 0) << 4) | (halves[2 * at + 1] ?? 0)
  }
  return data
}

/** Blocks with their check bytes, interleaved. */
function withChecks(version: number, data: Uint8Array): number[] {
  const count = blockCounts[version - 1] ?? 1
  const shortLength = Math.floor(data.length / count)
  const longCount = data.length % count
  const divisor = generator(checkBytes[version - 1] ?? 0)
  const blocks = Array.from({ length: count }, (_, index) => {
    const isLong = index >= count - longCount
    const start = index * shortLength + Math.max(0, index - (count - longCount))
    return data.subarray(start, start + shortLength + (isLong ? 1 : 0))
  })
  const checks = blocks.map((block) => remainder(block, divisor))
  const interleaved = (parts: readonly (readonly number[] | Uint8Array)[]) =>
    Array.from({ length: Math.max(...parts.map(({ length }) => length)) }, (_, at) =>
      parts.flatMap((part) => part[at] ?? []),
    ).flat()
  return [...interleaved(blocks), ...interleaved(checks)]
}

/** The product in the field of 256 elements over x^8 + x^4 + x^3 + x^2 + 1. */
function product(a: number, b: number): number {
  let result = 0
  for (let bit = 7; bit >= 0; bit--) {
    result = (result << 1) ^ ((result >> 7) * 0x11d)
    if ((b >> bit) & 1) result ^= a
  }
  return result
}

/** Factors of the Reed-Solomon polynomial of this degree, without the leading 1. */
function generator(degree: number): number[] {
  let factors: number[] = [1]
  let root = 1
  for (let n = 0; n < degree; n++) {
    const shifted = [...factors, 0]
    factors = shifted.map((factor, at) => factor ^ product(factors[at - 1] ?? 0, root))
    root = product(root, 2)
  }
  return factors.slice(1)
}

function remainder(block: Uint8Array, divisor: readonly number[]): number[] {
  let rest = divisor.map(() => 0)
  for (const byte of block) {
    const factor = byte ^ (rest[0] ?? 0)
    rest = divisor.map((one, at) => (rest[at + 1] ?? 0) ^ product(one, factor))
  }
  return rest
}

class Grid {
  readonly modules: boolean[][]
  /** Modules that hold no data. */
  readonly #isFixed: boolean[][]
  readonly #size: number

  constructor(version: number) {
    this.#size = 17 + 4 * version
    const rows = () => Array.from({ length: this.#size }, () => Array<boolean>(this.#size).fill(false))
    this.modules = rows()
    this.#isFixed = rows()
    const end = this.#size - 1
    for (let at = 0; at <= end; at++) {
      this.#set(6, at, at % 2 === 0)
      this.#set(at, 6, at % 2 === 0)
    }
    this.#drawMarks(version)
    for (const [row, column] of [
      [3, 3],
      [3, end - 3],
      [end - 3, 3],
    ] as const)
      this.#square(row, column, 4, (distance) => distance !== 2 && distance !== 4)
    this.#drawFacts(version)
  }

  /** Fills two columns at a time from the right, upwards and downwards in turn, under the checkerboard mask. */
  fill(bytes: readonly number[]): void {
    let bit = 0
    let isUpward = true
    for (let right = this.#size - 1; right > 0; right -= 2) {
      if (right === 6) right--
      for (let step = 0; step < this.#size; step++) {
        const row = isUpward ? this.#size - 1 - step : step
        for (const column of [right, right - 1]) {
          if (this.#isFixed[row]?.[column]) continue
          const isOne = (((bytes[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1) === 1
          this.#set(row, column, isOne !== ((row + column) % 2 === 0))
          bit++
        }
      }
      isUpward = !isUpward
    }
  }

  #set(row: number, column: number, isDark: boolean): void {
    const [line, fixed] = [this.modules[row], this.#isFixed[row]]
    if (!line || !fixed || column < 0 || column >= this.#size) return
    line[column] = isDark
    fixed[column] = true
  }

  #square(row: number, column: number, reach: number, isDark: (distance: number) => boolean): void {
    for (let down = -reach; down <= reach; down++)
      for (let across = -reach; across <= reach; across++)
        this.#set(row + down, column + across, isDark(Math.max(Math.abs(down), Math.abs(across))))
  }

  /** Small squares by which a reader finds the rows. */
  #drawMarks(version: number): void {
    if (version === 1) return
    const count = Math.floor(version / 7) + 2
    const step = Math.ceil((version * 4 + 4) / (count * 2 - 2)) * 2
    const last = this.#size - 7
    const places = [6, ...Array.from({ length: count - 1 }, (_, index) => last - step * (count - 2 - index))]
    for (const row of places)
      for (const column of places) {
        // The large squares are here.
        if (row === 6 && column === 6) continue
        if ((row === 6 && column === last) || (row === last && column === 6)) continue
        this.#square(row, column, 2, (distance) => distance !== 1)
      }
  }

  /** Draws level and mask, twice; from version 7 on also the version. Each has the check bits of its own code. */
  #drawFacts(version: number): void {
    const end = this.#size - 1
    // Level L is 1, the checkerboard mask 0.
    const format = coded(1 << 3, 10, 0x537) ^ 0x5412
    for (let bit = 0; bit < 15; bit++) {
      const isDark = ((format >> bit) & 1) === 1
      const near = bit < 6 ? bit : bit < 8 ? bit + 1 : undefined
      if (near === undefined) this.#set(8, bit === 8 ? 7 : 14 - bit, isDark)
      else this.#set(near, 8, isDark)
      if (bit < 8) this.#set(8, end - bit, isDark)
      else this.#set(end - 14 + bit, 8, isDark)
    }
    this.#set(end - 7, 8, true)
    if (version < 7) return
    const word = coded(version, 12, 0x1f25)
    for (let bit = 0; bit < 18; bit++) {
      const [along, across] = [Math.floor(bit / 3), end - 10 + (bit % 3)]
      this.#set(along, across, ((word >> bit) & 1) === 1)
      this.#set(across, along, ((word >> bit) & 1) === 1)
    }
  }
}

/** A word followed by the check bits of a BCH code. */
function coded(word: number, checkBits: number, polynomial: number): number {
  let rest = word
  for (let n = 0; n < checkBits; n++) rest = (rest << 1) ^ ((rest >> (checkBits - 1)) * polynomial)
  return (word << checkBits) | rest
}
