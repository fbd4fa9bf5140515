import type { FileHandle } from 'node:fs/promises'
import { StemworkError } from '../../../core/engine/errors.js'
import type { ByteRange } from '../../../core/engine/ports/blob-store.js'
import type { DiskTurn } from './disk-turns.js'
import { storageError } from './storage-error.js'

const chunkBytes = 128 * 1024
/** For all chunks whose memory is reused, together: the more files are read this way, the smaller each chunk. */
const reusedBytes = 8 * 1024 * 1024
const leastChunkBytes = 16 * 1024
/** Bodies that hold such a chunk. */
let reusing = 0

export interface ReadingOptions {
  turn: DiskTurn
  signal?: AbortSignal
  /** See `BlobStore.get`. */
  reuseMemory?: boolean
  /** The first chunk, if it is being read already. */
  first?: Promise<Uint8Array>
}

/** Reads up to so many bytes. */
export async function readChunk(
  file: FileHandle,
  memory: Buffer,
  { position, length, turn }: { position: number; length: number; turn: DiskTurn },
): Promise<Uint8Array> {
  const { bytesRead } = await turn(() => file.read(memory, 0, length, position)).catch((error: unknown) => {
    throw storageError('read a blob', error)
  })
  if (bytesRead === 0)
    throw new StemworkError(
      'STORE_UNAVAILABLE',
      'A blob file became shorter while it was being read: another program changed it.',
    )
  return memory.subarray(0, bytesRead)
}

/**
 * The bytes of `range` of an open file, which is closed at the end, at an error and when the iteration is ended. Not a
 * generator: one that was never started would leave the file open when it is closed.
 */
export class FileBody implements AsyncIterableIterator<Uint8Array> {
  readonly #file: FileHandle
  readonly #end: number
  readonly #turn: DiskTurn
  readonly #signal: AbortSignal | undefined
  readonly #reuseMemory: boolean
  #first: Promise<Uint8Array> | undefined
  #memory: Buffer | undefined
  #position: number
  #closed = false

  constructor(file: FileHandle, range: ByteRange, { turn, signal, reuseMemory = false, first }: ReadingOptions) {
    this.#file = file
    this.#position = range.start
    this.#end = range.end
    this.#turn = turn
    this.#signal = signal
    this.#reuseMemory = reuseMemory
    this.#first = first
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#closed) return { done: true, value: undefined }
    if (this.#position > this.#end) return this.return()
    try {
      this.#signal?.throwIfAborted()
      const chunk = await (this.#first ?? this.#read())
      this.#first = undefined
      this.#position += chunk.byteLength
      this.#signal?.throwIfAborted()
      return { done: false, value: chunk }
    } catch (error) {
      await this.return()
      throw error
    }
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    if (!this.#closed) {
      this.#closed = true
      if (this.#memory) reusing--
      this.#memory = undefined
      await this.#first?.catch(() => {})
      await this.#file.close()
    }
    return { done: true, value: undefined }
  }

  #read(): Promise<Uint8Array> {
    const left = this.#end - this.#position + 1
    const memory = this.#reuseMemory ? this.#reused(left) : Buffer.allocUnsafe(Math.min(chunkBytes, left))
    const length = Math.min(memory.byteLength, left)
    return readChunk(this.#file, memory, { position: this.#position, length, turn: this.#turn })
  }

  #reused(left: number): Buffer {
    if (!this.#memory) reusing++
    const share = Math.min(chunkBytes, Math.max(leastChunkBytes, Math.floor(reusedBytes / reusing)))
    if (!this.#memory || this.#memory.byteLength > share) this.#memory = Buffer.allocUnsafeSlow(Math.min(share, left))
    return this.#memory
  }
}
