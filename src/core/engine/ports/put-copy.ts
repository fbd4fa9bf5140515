import { createReadStream } from 'node:fs'
import type { BlobStat, BlobStore, PutOptions } from './blob-store.js'

/**
 * Stores a copy of a file of this machine.
 *
 * The file is closed even if the store rejects the call without reading it, as when it cannot be reached. An error of
 * the file then has no reader either, and would end the process.
 */
export async function putCopy(
  blobs: Pick<BlobStore, 'put'>,
  key: string,
  path: string,
  options?: PutOptions,
): Promise<BlobStat> {
  const file = createReadStream(path).on('error', () => {})
  try {
    return await blobs.put(key, file, options)
  } finally {
    file.destroy()
  }
}
