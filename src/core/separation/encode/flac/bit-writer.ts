/** Writes numbers of any width, most significant bit first. What it has not reached yet need not be zeros. */
export class BitWriter {
  /** How many bits are written. */
  bit = 0
  readonly #bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /**
   * @param value of which the lower `width` bits are written; negative numbers in two's complement
   * @param width 0 to 32
   */
  put(value: number, width: number): void {
    for (let left = width; left > 0;) {
      const free = 8 - (this.bit % 8)
      const taken = Math.min(free, left)
      const part = (value >> (left - taken)) & ((1 << taken) - 1)
      const at = this.bit >> 3
      const kept = free === 8 ? 0 : this.#bytes[at] & (0xff << free)
      this.#bytes[at] = kept | (part << (free - taken))
      this.bit += taken
      left -= taken
    }
  }

  /** Fills up the last byte with zeros. Returns how many bytes there are. */
  align(): number {
    this.put(0, (8 - (this.bit % 8)) % 8)
    return this.bit / 8
  }
}
