/** Reads big-endian bit fields. Past the end it reads zeros and sets `isOverrun`. */
export class BitReader {
  readonly #bytes: Uint8Array
  /** In bits. */
  position: number

  constructor(bytes: Uint8Array, byteOffset: number) {
    this.#bytes = bytes
    this.position = byteOffset * 8
  }

  get isOverrun(): boolean {
    return this.position > this.#bytes.length * 8
  }

  /** Up to 32 bits. */
  unsigned(bits: number): number {
    if (bits === 0) return 0
    const value = this.#window() >>> (32 - bits)
    this.position += bits
    return value
  }

  /** Up to 53 bits, two's complement. */
  signed(bits: number): number {
    if (bits === 0) return 0
    if (bits > 32) return this.signed(bits - 32) * 2 ** 32 + this.unsigned(32)
    const value = this.#window() >> (32 - bits)
    this.position += bits
    return value
  }

  /** Number of zero bits before the next one bit, which is also consumed. */
  unary(): number {
    let zeros = 0
    for (;;) {
      const leading = Math.clz32(this.#window())
      zeros += leading
      this.position += leading
      if (leading < 32) break
      if (this.isOverrun) return zeros
    }
    this.position++
    return zeros
  }

  /** Fills `values[from..to)` with Rice-coded signed numbers (zig-zag order; RFC 9639, 9.2.7). */
  rice(values: Int32Array | Float64Array, from: number, to: number, parameter: number): void {
    for (let index = from; index < to; index++) {
      const window = this.#window()
      const zeros = Math.clz32(window)
      let folded
      if (zeros + 1 + parameter <= 32 && zeros < 31) {
        const low = parameter === 0 ? 0 : (window << (zeros + 1)) >>> (32 - parameter)
        folded = (zeros << parameter) | low
        this.position += zeros + 1 + parameter
      } else {
        const high = this.unary()
        folded = (high << parameter) | this.unsigned(parameter)
      }
      values[index] = (folded >>> 1) ^ -(folded & 1)
    }
  }

  /** The next 32 bits as a signed number. */
  #window(): number {
    const bytes = this.#bytes
    const at = this.position >> 3
    const shift = this.position & 7
    const word = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
    return shift === 0 ? word : (word << shift) | (bytes[at + 4]! >> (8 - shift))
  }
}
