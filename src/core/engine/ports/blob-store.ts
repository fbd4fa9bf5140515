/** A blob in a listing. */
export interface BlobEntry {
  key: string
  bytes: number
  /** Strong validator, without quotes. */
  etag: string
  /** Epoch milliseconds. */
  modifiedAt: number
}

export interface BlobStat extends BlobEntry {
  contentType: string
}

/** Bytes `start` to `end`, both inclusive, as in HTTP. */
export interface ByteRange {
  start: number
  end: number
}

export interface PutOptions {
  contentType?: string
  /** Do not replace an existing blob: throws `ALREADY_EXISTS` and leaves it untouched. */
  ifAbsent?: boolean
  signal?: AbortSignal
}

/**
 * The content of a blob: a stream of bytes (Node's or the web's), or all bytes at once; a string is stored as UTF-8.
 */
export type BlobSource = AsyncIterable<Uint8Array> | Uint8Array | string

/**
 * Files by key. Keys are made by the library, never from user text: `[A-Za-z0-9._-]` segments joined by `/`, no segment
 * `.` or `..` (`checkBlobKey`). No key is the folder of another: `a/b` and `a` cannot both exist. Other keys and
 * prefixes are refused with `INVALID_PARAMS`. `etag` changes with every put.
 */
export interface BlobStore {
  readonly traits: { readonly scope: 'process' | 'shared' }

  /**
   * Stores the bytes of `source`. After it returns the blob is complete and durable; until then, and if it throws or is
   * aborted, `get` shows the previous state and nothing is left behind. Of several puts of one key, the last to finish
   * wins.
   *
   * @throws whatever `source` throws, unchanged; the signal's reason; StemworkError `ALREADY_EXISTS`;
   * `STORE_UNAVAILABLE` (retryable) when the store cannot keep the bytes.
   */
  put(key: string, source: BlobSource, options?: PutOptions): Promise<BlobStat>

  /**
   * Stores a local file as `put` stores its bytes, and removes it: after it returns, there is no file at `path`; if it
   * throws, the file is unchanged. For stores that can move a file instead of copying it.
   */
  putFile?(key: string, path: string, options?: Omit<PutOptions, 'ifAbsent'>): Promise<BlobStat>

  /**
   * A stream of the blob, or of the part of it that lies in `range`; `undefined` if there is no blob. The stream
   * delivers the blob that `stat` describes, even if it is replaced or deleted meanwhile, or else throws: never fewer
   * or different bytes. Destroy (end the iteration) or drain the stream to free it.
   */
  get(
    key: string,
    options?: { range?: ByteRange; signal?: AbortSignal },
  ): Promise<{ stat: BlobStat; body: AsyncIterable<Uint8Array> } | undefined>

  /**
   * The file that holds the blob, for stores that keep each blob in one; `undefined` if there is no blob. Its first
   * `bytes` bytes are the blob, others may follow. For reading only, until the blob is deleted or replaced.
   */
  localFile?(key: string): Promise<{ path: string; bytes: number } | undefined>

  stat(key: string): Promise<BlobStat | undefined>

  /** Removes the blob. An absent one is not an error. */
  delete(key: string): Promise<void>

  /**
   * Removes every blob whose key begins with `prefix` (which ends in `/`) and returns how many. Unfinished writes under
   * it fail when they end (`STORE_UNAVAILABLE`).
   */
  deletePrefix(prefix: string): Promise<number>

  /** Every blob whose key begins with `prefix` (which ends in `/`), in key order (code units). */
  list(prefix: string): AsyncIterable<BlobEntry>

  /**
   * Removes leftovers of interrupted writes (temporary files, unfinished multipart uploads) that are older than
   * `olderThanMs`.
   */
  cleanUp?(olderThanMs: number): Promise<number>

  /** A URL that answers GET with the blob until it expires; present where the store itself can serve clients. */
  signGet?(key: string, options: { expiresInSeconds: number; fileName: string; contentType: string }): Promise<string>

  /** A URL that accepts one PUT of the blob; present where the store itself can receive from clients. */
  signPut?(key: string, options: { expiresInSeconds: number }): Promise<string>
}
