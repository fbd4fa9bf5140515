/** Writes numbers of any width, most significant bit first. Up to three bytes after the written ones become zeros. */
export class BitWriter {
  /** Number of bits written. */
  bit = 0
  readonly #bytes: Uint8Array
  readonly #view: DataView

  /** @param bytes room for three bytes more than will be written */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /**
   * @param value of which the lower `width` bits are written; negative numbers in two's complement
   * @param width 0 to 32
   */
  put(value: number, width: number): void {
    if (width > 24) {
      this.put(value >> 16, width - 16)
      return this.put(value, 16)
    }
    const at = this.bit >> 3
    const used = this.bit & 7
    const kept = used === 0 ? 0 : this.#bytes[at]! & (0xff00 >> used)
    this.#view.setUint32(at, (kept << 24) | ((value & ((1 << width) - 1)) << (32 - used - width)))
    this.bit += width
  }

  /** Fills up the last byte with zeros. Returns the number of bytes. */
  align(): number {
    this.put(0, (8 - (this.bit % 8)) % 8)
    return this.bit / 8
  }
}
