import { type FileHandle, open, stat } from 'node:fs/promises'
import type { ReadableBytes } from './file-bytes.js'

/**
 * A file of the file system. Nothing stays open between reads.
 *
 * @throws the file system's own error when `path` cannot be read
 */
export async function localFile(path: string): Promise<ReadableBytes> {
  const { size } = await stat(path)
  return {
    size,
    async read(position, length) {
      const handle = await open(path, 'r')
      try {
        return await readInto(handle, new Uint8Array(length), position)
      } finally {
        await handle.close()
      }
    },
  }
}

/** Fills the memory with the bytes from `position` on; returns the filled part, shorter at the end of the file. */
export async function readInto<Memory extends Uint8Array>(
  file: FileHandle,
  memory: Memory,
  position: number,
): Promise<Memory> {
  let filled = 0
  while (filled < memory.length) {
    const { bytesRead } = await file.read(memory, filled, memory.length - filled, position + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return memory.subarray(0, filled) as Memory
}
