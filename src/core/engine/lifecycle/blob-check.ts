import { randomUUID } from 'node:crypto'
import { checksPrefix } from '../job/blob-keys.js'
import type { BlobStore } from '../ports/blob-store.js'

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
 * Whether the blob store takes files: a small one is written and removed. A folder can be read-only, or a disk full,
 * while all that is read is well.
 */
export class BlobCheck {
  readonly #options: Required<BlobCheckOptions>
  /** Its own, so that no other process removes it meanwhile. */
  readonly #key = `${checksPrefix}${randomUUID()}`
  #last: Promise<void> | undefined
  #believedUntil = Infinity

  constructor(options: BlobCheckOptions) {
    this.#options = { timeoutMs: 5_000, clock: () => performance.now(), ...options }
  }

  /**
   * Made again a minute after it went well, or 10 s after it failed; calls meanwhile get the last outcome.
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
    // A store that hangs may not hear the signal either.
    const late = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
    const writeAndRemove = async () => {
      await blobs.put(this.#key, 'stemwork', { contentType: 'text/plain', signal })
      await blobs.delete(this.#key)
    }
    await Promise.race([writeAndRemove(), late])
  }
}
