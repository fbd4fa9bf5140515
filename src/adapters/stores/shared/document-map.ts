import type { DocumentWrite, StoredDocument } from '../../../core/engine/ports/document-store.js'

/** @experimental */
export interface DocumentEntry {
  text: string
  version: number
  expiresAt: number
  dueAt: number | null
}

/**
 * The documents of one kind by their keys, for stores that hold them in memory.
 *
 * @experimental
 */
export class DocumentMap {
  readonly entries: Map<string, DocumentEntry>

  constructor(entries: Iterable<readonly [string, DocumentEntry]> = []) {
    this.entries = new Map(entries)
  }

  get(key: string, now: number): StoredDocument | undefined {
    const entry = this.entries.get(key)
    return entry && entry.expiresAt > now ? stored(key, entry) : undefined
  }

  /** @param version 0: it does not exist */
  hasVersion(key: string, version: number, now: number): boolean {
    return (this.get(key, now)?.version ?? 0) === version
  }

  put({ key, value, ttlMs, dueInMs = null }: DocumentWrite, version: number | undefined, now: number) {
    if (version !== undefined && !this.hasVersion(key, version, now)) return undefined
    const present = this.get(key, now)?.version ?? 0
    this.entries.set(key, {
      text: JSON.stringify(value),
      version: present + 1,
      expiresAt: now + ttlMs,
      dueAt: dueInMs === null ? null : now + dueInMs,
    })
    return present + 1
  }

  list({ limit, after = '' }: { limit: number; after?: string }, now: number): StoredDocument[] {
    return this.#live(now)
      .filter(([key]) => after === '' || compareBytes(key, after) > 0)
      .sort(([a], [b]) => compareBytes(a, b))
      .slice(0, Math.max(0, limit))
      .map(([key, entry]) => stored(key, entry))
  }

  due(limit: number, now: number): StoredDocument[] {
    return this.#live(now)
      .filter(([, { dueAt }]) => dueAt !== null && dueAt <= now)
      .sort(([, a], [, b]) => (a.dueAt ?? 0) - (b.dueAt ?? 0))
      .slice(0, Math.max(0, limit))
      .map(([key, entry]) => stored(key, entry))
  }

  removeExpired(limit: number, now: number): number {
    let removed = 0
    for (const [key, { expiresAt }] of this.entries)
      if (removed < limit && expiresAt <= now && this.entries.delete(key)) removed++
    return removed
  }

  #live(now: number): [string, DocumentEntry][] {
    return [...this.entries].filter(([, { expiresAt }]) => expiresAt > now)
  }
}

function stored(key: string, { version, text }: DocumentEntry): StoredDocument {
  return { key, version, value: JSON.parse(text) }
}

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
