import type { FileHandle } from 'node:fs/promises'

/** Longer tags are not read. */
const maxTagBytes = 8 * 1024 * 1024
/** Boxes, chunks and blocks of a file that are looked at. */
const maxHeaders = 1000

/** Reads the parts of a file that may hold tags: of few bytes each, limited in number. */
export class TagSource {
  readonly bytes: number
  readonly #file: FileHandle
  #headers = 0

  constructor(file: FileHandle, bytes: number) {
    this.#file = file
    this.bytes = bytes
  }

  /** The bytes from there on: fewer at the end of the file. */
  async read(position: number, length: number): Promise<Buffer> {
    const buffer = Buffer.alloc(Math.min(Math.max(length, 0), maxTagBytes))
    let filled = 0
    while (filled < buffer.length) {
      const { bytesRead } = await this.#file.read(buffer, filled, buffer.length - filled, position + filled)
      if (bytesRead === 0) break
      filled += bytesRead
    }
    return buffer.subarray(0, filled)
  }

  /** A tag of that length; `undefined` if it is too long or incomplete. */
  async tag(position: number, length: number): Promise<Buffer | undefined> {
    if (length > maxTagBytes) return undefined
    const found = await this.read(position, length)
    return found.length === length ? found : undefined
  }

  /** The header of a box, chunk or block; `undefined` at the end of the file and after too many of them. */
  async header(position: number, length: number): Promise<Buffer | undefined> {
    return this.#headers++ < maxHeaders ? this.tag(position, length) : undefined
  }
}
