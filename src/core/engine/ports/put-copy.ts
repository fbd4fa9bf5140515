import { createReadStream } from 'node:fs'
import type { BlobStat, BlobStore, PutOptions } from './blob-store.js'

/**
 * Stores a copy of a local file.
 *
 * The file is closed even if the store rejects the call without reading it, for example because it is unreachable.
 * Errors of the file are caught, because without a reader they would crash the process.
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
