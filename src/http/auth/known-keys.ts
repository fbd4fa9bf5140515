import { codesOf, type KeyFingerprint, publicPart, sameText } from './api-key.js'
import type { Caller } from '../options.js'

const maxKnown = 1000

interface KnownKey {
  print: KeyFingerprint
  /** The application that holds the key. A key never changes hands. */
  caller: Caller
}

/**
 * Keys that were found good, so that for a client that polls nothing is hashed and its application not looked up each time. Whether
 * a key still works is for the store to say, each time. Lives in this process's memory alone.
 */
export class KnownKeys {
  readonly #known = new Map<string, KnownKey & { codes: Uint16Array }>()

  /** A key that was found good; `undefined` for any other. */
  find(key: string): KnownKey | undefined {
    const known = this.#known.get(publicPart(key))
    return known && sameText(key, known.codes) ? known : undefined
  }

  /** Remembers a key that was found good. */
  add(key: string, { print, caller }: KnownKey): void {
    // Keys that an operator brought along have no public part to be found by.
    if (!publicPart(key).endsWith(print.id)) return
    this.#known.set(publicPart(key), { codes: codesOf(key), print, caller })
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
