import { usedTicketKey } from '../../core/engine/job/blob-keys.js'
import type { BlobStore } from '../../core/engine/ports/blob-store.js'

/** Whether a file was ever stored with the ticket, even if it is gone. */
export async function isUsed(blobs: BlobStore, key: string): Promise<boolean> {
  return (await Promise.all([blobs.stat(key), blobs.stat(usedTicketKey(key))])).some((stat) => stat !== undefined)
}
