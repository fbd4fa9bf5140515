export interface StoredDocument {
  key: string
  /** Increases with each write, from 1. */
  version: number
  /** The written value, after a round trip through JSON. */
  value: unknown
}

export interface DocumentWrite {
  kind: string
  /** At most 400 characters. */
  key: string
  /** Any JSON value; its strings may have any characters, including U+0000. */
  value: unknown
  /** Time after which the document no longer exists. */
  ttlMs: number
  /** When `due` returns the document; null: never. Default: null. */
  dueInMs?: number | null
}

/**
 * Small records besides the jobs, such as batches and live workers. Times are by the store's clock. An expired document
 * does not exist for any method. Changes are visible to every later call. Kinds and keys are any text and are compared
 * exactly.
 */
export interface DocumentStore {
  get(kind: string, key: string): Promise<StoredDocument | undefined>
  /**
   * Writes the whole document, including its due time, and returns its version: one more than that of the existing
   * document, 1 if there is none (or an expired one). With `version`, writes only if that is the current version (0:
   * the document does not exist); otherwise returns `undefined` and writes nothing. Of simultaneous writes with the
   * same version, one succeeds.
   */
  put(document: DocumentWrite, options?: { version?: number }): Promise<number | undefined>
  /** Deletes a document, if it exists. */
  delete(kind: string, key: string): Promise<void>
  /**
   * Documents in key order (by UTF-8 bytes), at most `limit` (0: none), starting after the key `after`, which need not
   * exist.
   */
  list(kind: string, options: { limit: number; after?: string }): Promise<StoredDocument[]>
  /**
   * Documents that are due, earliest first, at most `limit`. A document stays due until it is written without a due
   * time or with a later one, deleted, or expired.
   */
  due(kind: string, limit: number): Promise<StoredDocument[]>
  /** Deletes up to `limit` expired documents, of all kinds, and returns their number. */
  removeExpired(limit: number): Promise<number>
}
