import { open, stat } from 'node:fs/promises'
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
      const bytes = new Uint8Array(length)
      const handle = await open(path, 'r')
      try {
        let filled = 0
        while (filled < length) {
          const { bytesRead } = await handle.read(bytes, filled, length - filled, position + filled)
          if (bytesRead === 0) break
          filled += bytesRead
        }
        return filled === length ? bytes : bytes.subarray(0, filled)
      } finally {
        await handle.close()
      }
    },
  }
}
