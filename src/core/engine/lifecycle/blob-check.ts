import { randomUUID } from 'node:crypto'
import { checksPrefix } from '../job/blob-keys.js'
import type { BlobStore } from '../ports/blob-store.js'
import { untilAborted } from '../workflow/until-aborted.js'

/** How long an outcome is believed: health checks come every few seconds. */
const believedMs = { good: 60_000, bad: 10_000 }

export interface BlobCheckOptions {
  blobs: Pick<BlobStore, 'put' | 'delete'>
  /** How long the store has. Default: 5 s. */
  timeoutMs?: number
  /** Milliseconds that only rise. Default: `performance.now`. */
  clock?: () => number
}

/**
 * Whether the blob store accepts files: a small one is written and removed. A folder can be read-only, or a disk full,
 * while reading still works.
 */
export class BlobCheck {
  readonly #options: Required<BlobCheckOptions>
  /** A key of its own, so that no other process removes the blob meanwhile. */
  readonly #key = `${checksPrefix}${randomUUID()}`
  #last: Promise<void> | undefined
  #believedUntil = Infinity

  constructor(options: BlobCheckOptions) {
    this.#options = { timeoutMs: 5_000, clock: () => performance.now(), ...options }
  }

  /**
   * Repeated a minute after a success or 10 s after a failure; calls in between get the last outcome.
   *
   * @throws the error of the store; a `TimeoutError` when it does not answer.
   */
  check(): Promise<void> {
    const { clock } = this.#options
    if (clock() < this.#believedUntil && this.#last) return this.#last
    this.#believedUntil = Infinity
    this.#last = this.#write().then(
      () => void (this.#believedUntil = clock() + believedMs.good),
      (error: unknown) => {
        this.#believedUntil = clock() + believedMs.bad
        throw error
      },
    )
    return this.#last
  }

  async #write(): Promise<void> {
    const { blobs, timeoutMs } = this.#options
    const signal = AbortSignal.timeout(timeoutMs)
    const writeAndRemove = async () => {
      await blobs.put(this.#key, 'stemwork', { contentType: 'text/plain', signal })
      await blobs.delete(this.#key)
    }
    // A store that hangs may ignore the signal, too.
    await untilAborted(writeAndRemove(), signal)
  }
}
