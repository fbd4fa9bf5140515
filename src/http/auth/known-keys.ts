import { keepLatest } from '../keep-latest.js'
import { codesOf, type KeyFingerprint, publicPart, sameText } from './api-key.js'
import type { Sender } from '../options.js'

const maxKnown = 1000

export interface KnownKey {
  print: KeyFingerprint
  /** The application that holds the key. A key never changes hands. */
  caller: Sender
}

/**
 * Keys that were verified, so that a polling client costs no hash and no look-up of its application each time. The
 * store still decides each time whether a key works. Kept only in this process's memory.
 */
export class KnownKeys {
  readonly #known = new Map<string, KnownKey & { codes: Uint16Array }>()
  /** IDs of keys that an operator supplied, which have no public part for a look-up. */
  readonly #supplied = new Map<string, true>()

  /** A verified key; `undefined` for any other. */
  find(key: string): KnownKey | undefined {
    const known = this.#known.get(publicPart(key))
    return known && sameText(key, known.codes) ? known : undefined
  }

  /** Remembers a verified key. */
  add(key: string, { print, caller }: KnownKey): void {
    const part = publicPart(key)
    if (part.endsWith(print.id)) keepLatest(this.#known, part, { codes: codesOf(key), print, caller }, maxKnown)
    else keepLatest(this.#supplied, print.id, true, maxKnown)
  }

  /** Whether a key with this ID was verified, if it has no public part. */
  hasSupplied(id: string): boolean {
    return this.#supplied.has(id)
  }

  /** Forgets a key that no longer works. */
  remove(key: string): void {
    this.#known.delete(publicPart(key))
  }
}
