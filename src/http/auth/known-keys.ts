import { codesOf, type KeyFingerprint, publicPart, sameText } from './api-key.js'
import type { Sender } from '../options.js'

const maxKnown = 1000

interface KnownKey {
  print: KeyFingerprint
  /** The application that holds the key. A key never changes hands. */
  caller: Sender
}

/**
 * Keys that were found good, so that for a client that polls nothing is hashed and its application not looked up each time. Whether
 * a key still works is for the store to say, each time. Lives in this process's memory alone.
 */
export class KnownKeys {
  readonly #known = new Map<string, KnownKey & { codes: Uint16Array }>()
  /** Ids of keys that an operator brought along, which have no public part to be found by. */
  readonly #brought = new Set<string>()

  /** A key that was found good; `undefined` for any other. */
  find(key: string): KnownKey | undefined {
    const known = this.#known.get(publicPart(key))
    return known && sameText(key, known.codes) ? known : undefined
  }

  /** Remembers a key that was found good. */
  add(key: string, { print, caller }: KnownKey): void {
    if (publicPart(key).endsWith(print.id)) {
      this.#known.set(publicPart(key), { codes: codesOf(key), print, caller })
      dropOldest(this.#known)
    } else {
      this.#brought.add(print.id)
      dropOldest(this.#brought)
    }
  }

  /** Whether a key with this id was found good, if it is one that cannot be found by itself. */
  hasBrought(id: string): boolean {
    return this.#brought.has(id)
  }

  /** Forgets a key that works no more. */
  remove(key: string): void {
    this.#known.delete(publicPart(key))
  }
}

function dropOldest(entries: Map<string, unknown> | Set<string>): void {
  for (const oldest of entries.keys()) {
    if (entries.size <= maxKnown) break
    entries.delete(oldest)
  }
}
