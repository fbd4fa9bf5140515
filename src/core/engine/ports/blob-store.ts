/** A blob in a listing. */
export interface BlobEntry {
  key: string
  bytes: number
  /** Strong validator: not empty, without quotes, another one after every put. */
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
  /** The application whose blob it is. Where calls of a store wait for each other, applications take turns. */
  app?: string
}

export interface PutOptions extends BlobOptions {
  /** Any header value; kept as it is given. Default: `application/octet-stream`. */
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
 * `..`, joined by `/`. A prefix is such a key and a `/`. Every method refuses others with `INVALID_PARAMS` before it
 * does anything (`checkBlobKey`, `checkBlobPrefix`). Upper and lower case differ. Keys are made by the library, never
 * from user text, and no key is the folder of another: `a/b` and `a` are not both used.
 *
 * What a method has changed is seen by every later call; with the scope `shared`, of any process. Calls at the same
 * time each see the state before or after another's, never a part of it. "Not there" is `undefined`; a store that
 * cannot answer throws.
 */
export interface BlobStore {
  readonly traits: { readonly scope: 'process' | 'shared' }

  /**
   * Stores the bytes of `source`, of any length, 0 included. After it returns the blob is complete and durable; until
   * then, and if it throws or is aborted, `get` shows the previous state and nothing is left behind. Of several puts of
   * one key, the last to finish wins; of several with `ifAbsent`, exactly one. A put holds a few parts of the source in
   * memory, never all of it, and no chunk after it has asked for the next: sources use their memory again. The signal
   * ends it at once, also while the source is silent, and the source is closed.
   *
   * @throws whatever `source` throws, unchanged; the signal's reason; StemworkError `ALREADY_EXISTS`; `INVALID_PARAMS`
   * for a source that gives anything but bytes; `STORE_UNAVAILABLE` (retryable) when the store cannot keep the bytes,
   * or the blob's folder was deleted meanwhile (`deletePrefix`).
   */
  put(key: string, source: BlobSource, options?: PutOptions): Promise<BlobStat>

  /**
   * Stores a local file as `put` stores its bytes, and removes it: after it returns, there is no file at `path`; if it
   * throws, the file is unchanged. For stores that can move a file instead of copying it.
   */
  putFile?(key: string, path: string, options?: Omit<PutOptions, 'ifAbsent'>): Promise<BlobStat>

  /**
   * A stream of the blob, or of the part of it that lies in `range`; `undefined` if there is no blob. A range is
   * inclusive at both ends and is clipped: behind the end of the blob there are no bytes, which is not an error. `stat`
   * describes the whole blob. The stream delivers the blob that `stat` describes, even if it is replaced or deleted
   * meanwhile, or else throws: never fewer or different bytes. Its chunks are not empty and belong to the reader, with
   * `reuseMemory` only until it asks for the next: many that are sent one after the other then need the memory of one.
   * It holds a few of them in memory, never the whole blob. Destroy (end the iteration) or drain the stream to free it;
   * the signal ends it with an error.
   */
  get(
    key: string,
    options?: BlobOptions & { range?: ByteRange; signal?: AbortSignal; reuseMemory?: boolean },
  ): Promise<{ stat: BlobStat; body: AsyncIterable<Uint8Array> } | undefined>

  /**
   * The file that holds the blob, for stores that keep each blob in one; `undefined` if there is no blob. Its first
   * `bytes` bytes are the blob, others may follow. For reading only, until the blob is deleted or replaced.
   */
  localFile?(key: string): Promise<{ path: string; bytes: number } | undefined>

  stat(key: string): Promise<BlobStat | undefined>

  /** Removes the blob. An absent one is not an error. */
  delete(key: string, options?: BlobOptions): Promise<void>

  /**
   * Removes every blob whose key begins with `prefix`, any number of them, and returns how many. Unfinished writes
   * under it fail when they end (`STORE_UNAVAILABLE`) and never appear; later ones succeed.
   */
  deletePrefix(prefix: string, options?: BlobOptions): Promise<number>

  /**
   * Every blob whose key begins with `prefix`, once, in key order (code units, as `<` compares strings). Blobs may be
   * put and deleted during the iteration: those that are there all the time are shown, others may be. It may be left
   * early.
   */
  list(prefix: string): AsyncIterable<BlobEntry>

  /**
   * Removes leftovers of interrupted writes (temporary files, unfinished multipart uploads) to which nothing was
   * written since `before` (epoch milliseconds, by the clock of `modifiedAt`), and returns how many. It leaves blobs
   * alone, and later writes that are still going on.
   */
  cleanUp?(before: number): Promise<number>

  /** A URL that answers GET with the blob until it expires; present where the store itself can serve clients. */
  signGet?(key: string, options: { expiresInSeconds: number; fileName: string; contentType: string }): Promise<string>

  /** A URL that accepts one PUT of the blob; present where the store itself can receive from clients. */
  signPut?(key: string, options: { expiresInSeconds: number }): Promise<string>
}
