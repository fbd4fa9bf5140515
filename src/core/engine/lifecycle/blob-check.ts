import { randomUUID } from 'node:crypto'
import { checksPrefix } from '../job/blob-keys.js'
import type { BlobStore } from '../ports/blob-store.js'
import { untilAborted } from '../workflow/until-aborted.js'

/** How long an outcome is cached, because health checks run every few seconds. */
const believedMs = { good: 60_000, bad: 10_000 }

export interface BlobCheckOptions {
  blobs: Pick<BlobStore, 'put' | 'delete'>
  /** How long the check may take. Default: 5 s. */
  timeoutMs?: number
  /** A monotonic clock, in milliseconds. Default: `performance.now`. */
  clock?: () => number
}

/**
 * Checks whether the blob store accepts files: writes and removes a small one. A folder can be read-only, or a disk
 * full, while reading still works. The check is repeated a minute after a success or 10 s after a failure; calls in
 * between get the last outcome.
 *
 * @returns a function that rejects with the store's error, or with a `TimeoutError` if the store does not answer
 */
export function blobCheck({ blobs, timeoutMs = 5_000, clock = () => performance.now() }: BlobCheckOptions) {
  /** Unique, so that no other process removes the blob meanwhile. */
  const key = `${checksPrefix}${randomUUID()}`
  let last: Promise<void> | undefined
  let believedUntil = Infinity

  const write = async () => {
    const signal = AbortSignal.timeout(timeoutMs)
    const writeAndRemove = async () => {
      await blobs.put(key, 'stemwork', { contentType: 'text/plain', signal })
      await blobs.delete(key)
    }
    // A store that hangs may ignore the signal, too.
    await untilAborted(writeAndRemove(), signal)
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
