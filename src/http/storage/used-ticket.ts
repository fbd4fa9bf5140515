import type { BlobStore } from '../../core/engine/ports/blob-store.js'

/**
 * An empty blob beside the upload's key, which stays when the file goes with its job: a ticket takes no second file.
 * Retention removes it like an unused upload.
 */
function markerKey(key: string): string {
  return `${key}.used`
}

export async function markUsed(blobs: BlobStore, key: string): Promise<void> {
  await blobs.put(markerKey(key), nothing())
}

/** Whether a file was stored with the ticket, be it there still or not. */
export async function isUsed(blobs: BlobStore, key: string): Promise<boolean> {
  return (await Promise.all([blobs.stat(key), blobs.stat(markerKey(key))])).some((stat) => stat !== undefined)
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // No bytes.
}
