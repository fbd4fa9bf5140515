import { open, type FileHandle } from 'node:fs/promises'
import { StemworkError } from '../../engine/errors.js'

/** A file that is written from its start to its end, and whose start may be corrected then. */
export class OutputFile {
  readonly #file: FileHandle
  #bytes = 0

  private constructor(file: FileHandle) {
    this.#file = file
  }

  /** Creates or replaces the file. */
  static async open(path: string): Promise<OutputFile> {
    return new OutputFile(await open(path, 'w'))
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

/** Loads an optional package that encodes a format. */
export async function encoderPackage<Module>(
  name: string,
  format: string,
  load: () => Promise<Module>,
): Promise<Module> {
  try {
    return await load()
  } catch (error) {
    throw new StemworkError(
      'MISSING_DEPENDENCY',
      `Writing ${format} needs the package ${name}, which could not be loaded. Install it beside stemwork: npm install ${name}`,
      { cause: error },
    )
  }
}
