import { open, type FileHandle } from 'node:fs/promises'

/** Frames are gathered into pieces of this size before writing. */
const pieceBytes = 256 * 1024

/** Writes a file from start to end. Bytes already written can be corrected afterwards. */
export class FileWriter {
  readonly #file: FileHandle
  /** A new file is written at the handle's own position, because a pipe takes no other. */
  readonly #isNew: boolean
  #bytes: number
  #piece: Uint8Array | undefined
  #pieceLength = 0

  private constructor(file: FileHandle, bytes: number) {
    this.#file = file
    this.#isNew = bytes === 0
    this.#bytes = bytes
  }

  /** Creates or replaces the file. */
  static async open(path: string): Promise<FileWriter> {
    return new FileWriter(await open(path, 'w'), 0)
  }

  /** Resumes after the first `bytes` of a file. */
  static async reopen(path: string, bytes: number): Promise<FileWriter> {
    return new FileWriter(await open(path, 'r+'), bytes)
  }

  /** Without what is gathered. */
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

  /** Nothing may be gathered. */
  async append(content: Uint8Array): Promise<void> {
    for (let done = 0; done < content.length;) {
      const position = this.#isNew ? null : this.#bytes + done
      done += (await this.#file.write(content, done, content.length - done, position)).bytesWritten
    }
    this.#bytes += content.length
  }

  /** Replaces bytes that were written before. */
  async correct(content: Uint8Array, position: number): Promise<void> {
    await this.#file.write(content, 0, content.length, position)
  }

  async close(): Promise<void> {
    await this.#file.close()
  }
}
