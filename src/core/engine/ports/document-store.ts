export interface StoredDocument {
  key: string
  /** Rises with each write, from 1. */
  version: number
  /** As it was written, read back from JSON. */
  value: unknown
}

export interface DocumentWrite {
  kind: string
  /** At most 400 characters. */
  key: string
  /** Any JSON value; texts in it may have any characters, U+0000 too. */
  value: unknown
  /** It no longer exists after this time. */
  ttlMs: number
  /** When `due` returns it; null: never. Default: null. */
  dueInMs?: number | null
}

/**
 * Small records besides the jobs: batches and live workers. Times follow the store's clock. An expired document does
 * not exist for any method. What a method has changed is seen by every later call. Kinds and keys are any text and are
 * compared exactly.
 */
export interface DocumentStore {
  get(kind: string, key: string): Promise<StoredDocument | undefined>
  /**
   * Writes the whole document, its due time included, and returns its version: one more than that of the document that
   * is there, 1 where there is none (or an expired one). With `version`, only if that is its current version (0: it
   * does not exist); else returns `undefined` and writes nothing. Of simultaneous writes with the same version, one
   * succeeds.
   */
  put(document: DocumentWrite, options?: { version?: number }): Promise<number | undefined>
  /** An absent one is not an error. */
  delete(kind: string, key: string): Promise<void>
  /**
   * In the order of their keys (by UTF-8 bytes), at most `limit` (0: none), beginning behind the key `after`, which
   * need not exist.
   */
  list(kind: string, options: { limit: number; after?: string }): Promise<StoredDocument[]>
  /**
   * Those whose due time has come, earliest first, at most `limit`. A document stays due until it is written without a
   * due time or with a later one, deleted, or expired.
   */
  due(kind: string, limit: number): Promise<StoredDocument[]>
  /** Deletes up to this many expired ones, of all kinds, and returns how many. */
  removeExpired(limit: number): Promise<number>
}
