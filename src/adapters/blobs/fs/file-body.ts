import type { FileHandle } from 'node:fs/promises'
import { storeUnavailable } from '../../../core/engine/errors.js'
import type { ByteRange } from '../../../core/engine/ports/blob-store.js'
import type { DiskTurn } from './disk-turns.js'
import { storageError } from './storage-error.js'

const chunkBytes = 128 * 1024
/** Total of all chunks whose memory is reused: the more files are read this way, the smaller each chunk. */
const reusedBytes = 8 * 1024 * 1024
const leastChunkBytes = 16 * 1024
/** Bodies that hold a reused chunk. */
let reusing = 0

export interface ReadingOptions {
  turn: DiskTurn
  signal?: AbortSignal
  /** See `BlobStore.get`. */
  reuseMemory?: boolean
  /** The first chunk, if it is being read already. */
  first?: Promise<Uint8Array>
}

/** Reads up to `length` bytes. */
export async function readChunk(
  file: FileHandle,
  memory: Buffer,
  { position, length, turn }: { position: number; length: number; turn: DiskTurn },
): Promise<Uint8Array> {
  const { bytesRead } = await turn(() => file.read(memory, 0, length, position)).catch((error: unknown) => {
    throw storageError('read a blob', error)
  })
  if (bytesRead === 0)
    throw storeUnavailable('A blob file became shorter while it was being read: another program changed it.')
  return memory.subarray(0, bytesRead)
}

/**
 * Yields the bytes of a range of an open file, which is closed at the end, at an error and when the iteration stops.
 * Not a generator: closing one that was never started would leave the file open.
 */
export function fileBody(
  file: FileHandle,
  { start, end }: ByteRange,
  { turn, signal, reuseMemory, first }: ReadingOptions,
): AsyncIterableIterator<Uint8Array> {
  let reused: Buffer | undefined
  let position = start
  let isClosed = false
  const memoryFor = (left: number) => {
    if (!reuseMemory) return Buffer.allocUnsafe(Math.min(chunkBytes, left))
    if (!reused) reusing++
    const share = Math.min(chunkBytes, Math.max(leastChunkBytes, Math.floor(reusedBytes / reusing)))
    if (!reused || reused.byteLength > share) reused = Buffer.allocUnsafeSlow(Math.min(share, left))
    return reused
  }
  const read = () => {
    const left = end - position + 1
    const memory = memoryFor(left)
    return readChunk(file, memory, { position, length: Math.min(memory.byteLength, left), turn })
  }
  const close = async (): Promise<IteratorReturnResult<undefined>> => {
    if (!isClosed) {
      isClosed = true
      if (reused) reusing--
      reused = undefined
      await first?.catch(() => {})
      await file.close()
    }
    return { done: true, value: undefined }
  }
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    async next() {
      if (isClosed) return { done: true, value: undefined }
      if (position > end) return close()
      try {
        signal?.throwIfAborted()
        const chunk = await (first ?? read())
        first = undefined
        position += chunk.byteLength
        signal?.throwIfAborted()
        return { done: false, value: chunk }
      } catch (error) {
        await close()
        throw error
      }
    },
    return: close,
  }
}
