import { randomUUID } from 'node:crypto'
import { checkBlobKey, checkBlobPrefix } from '../../../core/engine/job/blob-keys.js'
import type { BlobStat, BlobStore, ByteRange } from '../../../core/engine/ports/blob-store.js'
import { blobChunks } from '../shared/blob-chunks.js'
import { abortable } from '../shared/abortable-source.js'
import { alreadyExists, folderDeleted } from '../shared/write-refusals.js'

export interface MemoryBlobsOptions {
  /** Epoch milliseconds. Default: `Date.now`. */
  clock?: () => number
}

interface Blob {
  stat: BlobStat
  chunks: readonly Uint8Array[]
}

/** Files in this process's memory: for tests and small results. Every byte counts against the process's memory. */
export function memoryBlobs({ clock = () => Date.now() }: MemoryBlobsOptions = {}): BlobStore {
  const blobs = new Map<string, Blob>()
  const unfinished = new Set<{ key: string; revoked: boolean }>()

  return {
    traits: { scope: 'process' },

    async put(key, source, { contentType = 'application/octet-stream', ifAbsent = false, signal } = {}) {
      checkBlobKey(key)
      if (ifAbsent && blobs.has(key)) throw alreadyExists(key)
      const write = { key, revoked: false }
      unfinished.add(write)
      try {
        const chunks: Uint8Array[] = []
        let bytes = 0
        for await (const chunk of abortable(blobChunks(source), signal)) {
          if (write.revoked) break
          // A copy: sources may reuse their buffers.
          chunks.push(Uint8Array.from(chunk))
          bytes += chunk.byteLength
        }
        signal?.throwIfAborted()
        if (write.revoked) throw folderDeleted(key)
        if (ifAbsent && blobs.has(key)) throw alreadyExists(key)
        const stat: BlobStat = Object.freeze({ key, bytes, contentType, etag: randomUUID(), modifiedAt: clock() })
        blobs.set(key, { stat, chunks })
        return stat
      } finally {
        unfinished.delete(write)
      }
    },

    async get(key, { range, signal } = {}) {
      const blob = blobs.get(checkBlobKey(key))
      return blob && { stat: blob.stat, body: abortable(bytesOf(blob, range), signal) }
    },

    async stat(key) {
      return blobs.get(checkBlobKey(key))?.stat
    },

    async delete(key) {
      blobs.delete(checkBlobKey(key))
    },

    async deletePrefix(prefix) {
      checkBlobPrefix(prefix)
      for (const write of unfinished) if (write.key.startsWith(prefix)) write.revoked = true
      const removed = keysWithPrefix(prefix)
      for (const key of removed) blobs.delete(key)
      return removed.length
    },

    async *list(prefix) {
      for (const key of keysWithPrefix(checkBlobPrefix(prefix))) {
        const blob = blobs.get(key)
        if (blob) yield blob.stat
      }
    },
  }

  function keysWithPrefix(prefix: string): string[] {
    return [...blobs.keys()].filter((key) => key.startsWith(prefix)).sort()
  }
}

async function* bytesOf(
  { chunks }: Blob,
  { start, end }: ByteRange = { start: 0, end: Infinity },
): AsyncGenerator<Uint8Array, void, void> {
  let position = 0
  for (const chunk of chunks) {
    const part = chunk.slice(Math.max(start - position, 0), Math.max(end + 1 - position, 0))
    position += chunk.byteLength
    if (part.byteLength > 0) yield part
  }
}
