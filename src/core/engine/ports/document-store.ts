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
  /** What JSON can say. */
  value: unknown
  /** From then on it is not there any more. */
  ttlMs: number
  /** When `due` shows it; null: never. Default: null. */
  dueInMs?: number | null
}

/**
 * Small records beside the jobs: batches, and the workers that are alive. Times are counted by the store's clock. A document whose time
 * is over is not there, whatever is asked.
 */
export interface DocumentStore {
  get(kind: string, key: string): Promise<StoredDocument | undefined>
  /**
   * Writes the whole document and returns its version. With `version`, only if that is its present one (0: it is not there); else it
   * returns `undefined`: of simultaneous writes with one version, one is made.
   */
  put(document: DocumentWrite, options?: { version?: number }): Promise<number | undefined>
  delete(kind: string, key: string): Promise<void>
  /** In the order of their keys (by UTF-8 bytes), behind `after`. */
  list(kind: string, options: { limit: number; after?: string }): Promise<StoredDocument[]>
  /** Those whose time has come, the earliest first. */
  due(kind: string, limit: number): Promise<StoredDocument[]>
  /** Forgets up to so many whose time is over. */
  removeExpired(limit: number): Promise<number>
}
