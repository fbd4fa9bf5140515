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
  /** Any JSON value. */
  value: unknown
  /** It no longer exists after this time. */
  ttlMs: number
  /** When `due` returns it; null: never. Default: null. */
  dueInMs?: number | null
}

/**
 * Small records besides the jobs: batches and live workers. Times follow the store's clock. An expired document does
 * not exist for any method.
 */
export interface DocumentStore {
  get(kind: string, key: string): Promise<StoredDocument | undefined>
  /**
   * Writes the whole document and returns its version. With `version`, only if that is its current version (0: it does
   * not exist); else returns `undefined`. Of simultaneous writes with the same version, one succeeds.
   */
  put(document: DocumentWrite, options?: { version?: number }): Promise<number | undefined>
  delete(kind: string, key: string): Promise<void>
  /** In the order of their keys (by UTF-8 bytes), after `after`. */
  list(kind: string, options: { limit: number; after?: string }): Promise<StoredDocument[]>
  /** The due ones, earliest first. */
  due(kind: string, limit: number): Promise<StoredDocument[]>
  /** Deletes up to this many expired ones. */
  removeExpired(limit: number): Promise<number>
}
