import { createHash, type Hash } from 'node:crypto'
import { constants } from 'node:fs'
import { open, readFile, rm, writeFile, type FileHandle } from 'node:fs/promises'
import { z } from 'zod'

/** Origin of the bytes in a partial file, stored next to it. */
const originSchema = z.object({ source: z.string(), validator: z.string().optional() })

type Origin = z.infer<typeof originSchema>

/** A file that is being written and that a later process can continue. Its hash is computed along the way. */
export class PartialFile {
  readonly #path: string
  readonly #file: FileHandle
  #hash: Hash
  #bytes: number
  #origin: Origin

  private constructor(path: string, file: FileHandle, origin: Origin) {
    this.#path = path
    this.#file = file
    this.#hash = createHash('sha256')
    this.#bytes = 0
    this.#origin = origin
  }

  /** Opens the file, keeping what an earlier process read from the same source; otherwise the file starts empty. */
  static async open(path: string, source: string): Promise<PartialFile> {
    const known = await originOf(path)
    const file = await open(path, constants.O_RDWR | constants.O_CREAT)
    const partial = new PartialFile(path, file, known?.source === source ? known : { source })
    try {
      if (known?.source === source) await partial.#hashContent()
      else await partial.startOver(undefined)
      return partial
    } catch (error) {
      await file.close()
      throw error
    }
  }

  static async remove(path: string): Promise<void> {
    await rm(path, { force: true })
    await rm(originPath(path), { force: true })
  }

  get bytes(): number {
    return this.#bytes
  }

  get validator(): string | undefined {
    return this.#origin.validator
  }

  async startOver(validator: string | undefined): Promise<void> {
    await this.#file.truncate(0)
    this.#hash = createHash('sha256')
    this.#bytes = 0
    this.#origin = { ...this.#origin, validator }
    await writeFile(originPath(this.#path), JSON.stringify(this.#origin))
  }

  async append(chunk: Uint8Array): Promise<void> {
    this.#hash.update(chunk)
    for (let done = 0; done < chunk.length;) {
      done += (await this.#file.write(chunk, done, chunk.length - done, this.#bytes + done)).bytesWritten
    }
    this.#bytes += chunk.length
  }

  /** Lower-case hexadecimal digits. */
  sha256(): string {
    return this.#hash.copy().digest('hex')
  }

  async close(): Promise<void> {
    try {
      await this.#file.sync()
    } finally {
      await this.#file.close()
    }
  }

  async #hashContent(): Promise<void> {
    for await (const chunk of this.#file.createReadStream({ start: 0, autoClose: false })) {
      this.#hash.update(chunk as Uint8Array)
      this.#bytes += (chunk as Uint8Array).length
    }
  }
}

function originPath(path: string): string {
  return `${path}.json`
}

async function originOf(path: string): Promise<Origin | undefined> {
  try {
    return originSchema.parse(JSON.parse(await readFile(originPath(path), 'utf8')))
  } catch {
    // Absent, or cut off when its writer died: the download cannot be continued from these bytes.
    return undefined
  }
}
