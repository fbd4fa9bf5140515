import { open, type FileHandle } from 'node:fs/promises'

/** Writes a file from start to end. Bytes already written can be corrected afterwards. */
export class FileWriter {
  readonly #file: FileHandle
  #bytes = 0

  private constructor(file: FileHandle) {
    this.#file = file
  }

  /** Creates or replaces the file. */
  static async open(path: string): Promise<FileWriter> {
    return new FileWriter(await open(path, 'w'))
  }

  get bytes(): number {
    return this.#bytes
  }

  async append(content: Uint8Array): Promise<void> {
    for (let done = 0; done < content.length;) {
      done += (await this.#file.write(content, done, content.length - done, this.#bytes + done)).bytesWritten
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
