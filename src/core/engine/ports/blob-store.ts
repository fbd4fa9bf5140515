/** A blob in a listing. */
export interface BlobEntry {
  key: string
  bytes: number
  /** Strong validator: not empty, without quotes, different after every put. */
  etag: string
  /** Epoch milliseconds of the put, by the store's clock; some stores keep whole seconds. */
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

export interface BlobOptions {
  /** The application that owns the blob. Where calls to a store queue, applications take turns. */
  app?: string
}

export interface PutOptions extends BlobOptions {
  /** Any header value; kept unchanged. Default: `application/octet-stream`. */
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
 * Files by key. A key has 1 to 900 characters: segments of 1 to 200 characters `[A-Za-z0-9._-]`, none of them `.` or
 * `..`, joined by `/`. A prefix is such a key and a `/`. Every method refuses other keys with `INVALID_PARAMS` before
 * it does anything (`checkBlobKey`, `checkBlobPrefix`). Keys are case-sensitive. They are made by the library, never
 * from user text, and no key is the folder of another: `a/b` and `a` are not both used.
 *
 * Changes are visible to every later call; with the scope `shared`, of any process. Of simultaneous calls, each sees
 * the state before or after another, never a part of the change. An absent blob is `undefined`; a store that cannot
 * answer throws.
 */
export interface BlobStore {
  readonly traits: { readonly scope: 'process' | 'shared' }

  /**
   * Stores the bytes of `source`, of any length, including 0. When it resolves, the blob is complete and durable; until
   * then, and if it throws or is aborted, `get` returns the previous state and nothing is left behind. Of several puts
   * of one key, the last to finish wins; of several with `ifAbsent`, exactly one. A put buffers a few parts of the
   * source, never all of it, and no chunk after it has requested the next, because sources reuse their memory. The
   * signal aborts it at once, even while the source is silent, and closes the source.
   *
   * @throws any error of `source`, unchanged; the signal's reason; StemworkError `ALREADY_EXISTS`; `INVALID_PARAMS` for
   * a source that yields anything but bytes; `STORE_UNAVAILABLE` (retryable) when the store cannot keep the bytes, or
   * the blob's folder was deleted meanwhile (`deletePrefix`).
   */
  put(key: string, source: BlobSource, options?: PutOptions): Promise<BlobStat>

  /**
   * Stores a local file as `put` stores bytes, and removes the file: when it resolves, there is no file at `path`; if
   * it throws, the file is unchanged. For stores that can move a file instead of copying it.
   */
  putFile?(key: string, path: string, options?: Omit<PutOptions, 'ifAbsent'>): Promise<BlobStat>

  /**
   * A stream of the blob, or of its part within `range`; `undefined` if there is no blob. A range is inclusive at both
   * ends and is clipped: beyond the end of the blob there are no bytes, which is not an error. `stat` describes the
   * whole blob. The stream delivers the blob that `stat` describes, even if the blob is replaced or deleted meanwhile,
   * or throws: never fewer or different bytes. Its chunks are not empty and belong to the reader; with `reuseMemory`
   * only until the reader requests the next, so that all of them share the memory of one. The stream buffers a few
   * chunks, never the whole blob. Destroy (end the iteration) or drain the stream to free it; the signal ends it with
   * an error.
   */
  get(
    key: string,
    options?: BlobOptions & { range?: ByteRange; signal?: AbortSignal; reuseMemory?: boolean },
  ): Promise<{ stat: BlobStat; body: AsyncIterable<Uint8Array> } | undefined>

  /**
   * The file that contains the blob, for stores that keep each blob in a file; `undefined` if there is no blob. Its
   * first `bytes` bytes are the blob; more may follow. For reading only, until the blob is deleted or replaced.
   */
  localFile?(key: string): Promise<{ path: string; bytes: number } | undefined>

  stat(key: string): Promise<BlobStat | undefined>

  /** Removes the blob. An absent one is not an error. */
  delete(key: string, options?: BlobOptions): Promise<void>

  /**
   * Removes all blobs whose keys begin with `prefix`, and returns their number, which has no limit. Unfinished writes
   * under it fail when they end (`STORE_UNAVAILABLE`) and never appear; later writes succeed.
   */
  deletePrefix(prefix: string, options?: BlobOptions): Promise<number>

  /**
   * Lists each blob whose key begins with `prefix` once, in key order (code units, as `<` compares strings). Blobs may
   * be put and deleted during the iteration: blobs that exist all the time are listed, others may be. The iteration may
   * be ended early.
   */
  list(prefix: string): AsyncIterable<BlobEntry>

  /**
   * Removes leftovers of interrupted writes (temporary files, unfinished multipart uploads) to which nothing was
   * written since `before` (epoch milliseconds, by the clock of `modifiedAt`), and returns their number. Does not
   * affect blobs, or later writes in progress.
   */
  cleanUp?(before: number): Promise<number>

  /** A URL that answers GET with the blob until it expires; present where the store itself can serve clients. */
  signGet?(key: string, options: { expiresInSeconds: number; fileName: string; contentType: string }): Promise<string>

  /** A URL that accepts one PUT of the blob; present where the store itself can receive from clients. */
  signPut?(key: string, options: { expiresInSeconds: number }): Promise<string>
}
