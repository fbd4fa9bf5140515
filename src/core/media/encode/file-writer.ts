/** Frames are gathered into pieces of this size before writing. */
const pieceBytes = 256 * 1024

/** What a file is written to. */
export interface WritableBytes {
  /**
   * Writes all of it.
   *
   * @param position the end of what was written, or that of bytes to replace
   */
  write(content: Uint8Array, position: number): Promise<void>
  close(): Promise<void>
}

/** Writes a file from start to end. Bytes already written can be corrected afterwards. */
export class FileWriter {
  readonly #file: WritableBytes
  #bytes: number
  #piece: Uint8Array | undefined
  #pieceLength = 0

  /** @param bytes how many the file already has */
  constructor(file: WritableBytes, bytes = 0) {
    this.#file = file
    this.#bytes = bytes
  }

  /** Bytes of the file, without what is gathered. */
  get bytes(): number {
    return this.#bytes
  }

  /** Copies a frame of at most a piece, and writes the piece when the next one has no room in it. */
  async gather(frame: Uint8Array): Promise<void> {
    this.#piece ??= new Uint8Array(pieceBytes)
    if (this.#pieceLength + frame.length > pieceBytes) await this.flush()
    this.#piece.set(frame, this.#pieceLength)
    this.#pieceLength += frame.length
  }

  /** Writes what is gathered. */
  async flush(): Promise<void> {
    if (!this.#piece) return
    const gathered = this.#piece.subarray(0, this.#pieceLength)
    this.#pieceLength = 0
    await this.append(gathered)
  }

  /** Not to be called while something is gathered. */
  async append(content: Uint8Array): Promise<void> {
    await this.#file.write(content, this.#bytes)
    this.#bytes += content.length
  }

  /** Replaces bytes that were written before. */
  async correct(content: Uint8Array, position: number): Promise<void> {
    await this.#file.write(content, position)
  }

  async close(): Promise<void> {
    await this.#file.close()
  }
}
