import { badInput } from '../core/engine/errors.js'
import type { ReadableBytes } from '../core/media/decode/file-bytes.js'

/** The bytes of a file that the user chose, read on demand. */
export function blobBytes(blob: Blob): ReadableBytes {
  return {
    size: blob.size,
    async read(position, length) {
      try {
        return new Uint8Array(await blob.slice(position, position + length).arrayBuffer())
      } catch (error) {
        throw badInput(
          'decode_failed',
          'The file could not be read. If it was moved or changed, choose it again.',
          error,
        )
      }
    },
  }
}
