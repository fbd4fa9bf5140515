import { codesOf, type KeyFingerprint, publicPart, sameText } from './api-key.js'

const maxKnown = 1000

/**
 * Keys that were found good, so that a client that polls is not hashed each time. It only spares the computation: whether a key
 * still works is for the store to say, each time. Lives in this process's memory alone.
 */
export class KnownKeys {
  readonly #known = new Map<string, { codes: Uint16Array; print: KeyFingerprint }>()

  /** The fingerprint of a key that was found good; `undefined` for any other. */
  find(key: string): KeyFingerprint | undefined {
    const known = this.#known.get(publicPart(key))
    return known && sameText(key, known.codes) ? known.print : undefined
  }

  /** Remembers a key that was found good. */
  add(key: string, print: KeyFingerprint): void {
    // Keys that an operator brought along have no public part to be found by.
    if (!publicPart(key).endsWith(print.id)) return
    this.#known.set(publicPart(key), { codes: codesOf(key), print })
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= maxKnown) break
      this.#known.delete(oldest)
    }
  }

  /** Forgets a key that works no more. */
  remove(key: string): void {
    this.#known.delete(publicPart(key))
  }
}
