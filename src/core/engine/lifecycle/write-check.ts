import { randomUUID } from 'node:crypto'
import { checksPrefix } from '../job/blob-keys.js'
import type { BlobStore } from '../ports/blob-store.js'
import type { DocumentStore } from '../ports/document-store.js'
import { untilAborted } from '../workflow/until-aborted.js'

/** How long an outcome is cached, because health checks run every few seconds. */
const believedMs = { good: 60_000, bad: 10_000 }

interface CheckOptions {
  /** How long the check may take. Default: 5 s. */
  timeoutMs?: number
  /** A monotonic clock, in milliseconds. Default: `performance.now`. */
  clock?: () => number
}

export interface BlobCheckOptions extends CheckOptions {
  blobs: Pick<BlobStore, 'put' | 'delete'>
}

/** Checks that the blob store accepts files: a folder can be read-only, or a disk full, while reading still works. */
export function blobCheck({ blobs, ...options }: BlobCheckOptions): () => Promise<void> {
  /** Unique, so that no other process removes the blob meanwhile. */
  const key = `${checksPrefix}${randomUUID()}`
  return writeCheck(async (signal) => {
    await blobs.put(key, 'stemwork', { contentType: 'text/plain', signal })
    await blobs.delete(key)
  }, options)
}

/** Checks that the job store accepts changes: after a failover or with a full disk, a database is read-only. */
export function documentCheck(documents: Pick<DocumentStore, 'put' | 'delete'>): () => Promise<void> {
  const kind = 'check'
  const key = randomUUID()
  return writeCheck(async () => {
    await documents.put({ kind, key, value: null, ttlMs: believedMs.good })
    await documents.delete(kind, key)
  })
}

/**
 * Writes and removes something small. The check is repeated a minute after a success or 10 s after a failure; calls in
 * between get the last outcome.
 *
 * @returns a function that rejects with the store's error, or with a `TimeoutError` if the store does not answer
 */
function writeCheck(
  writeAndRemove: (signal: AbortSignal) => Promise<void>,
  { timeoutMs = 5_000, clock = () => performance.now() }: CheckOptions = {},
): () => Promise<void> {
  let last: Promise<void> | undefined
  let believedUntil = Infinity

  const write = async () => {
    const signal = AbortSignal.timeout(timeoutMs)
    // A store that hangs may ignore the signal, too.
    await untilAborted(writeAndRemove(signal), signal)
  }

  return (): Promise<void> => {
    if (last && clock() < believedUntil) return last
    believedUntil = Infinity
    last = write().then(
      () => void (believedUntil = clock() + believedMs.good),
      (error: unknown) => {
        believedUntil = clock() + believedMs.bad
        throw error
      },
    )
    return last
  }
}
