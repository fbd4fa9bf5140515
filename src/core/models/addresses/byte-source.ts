export interface ByteSource {
  /** For messages, and to check whether a partial file belongs to this source. */
  readonly name: string
  /**
   * Starts to read at `from`, or at 0 if that is not possible or the file has changed since `validator` was returned.
   *
   * @throws PermanentFailure when a retry cannot help; any other error may be transient
   */
  open(request: ReadRequest): Promise<OpenedBytes>
}

export interface ReadRequest {
  from: number
  /** As returned by an earlier `open`. */
  validator?: string
  signal: AbortSignal
}

export interface OpenedBytes {
  /** Offset of the first byte in `chunks`. */
  from: number
  /** Identifies this version of the file. */
  validator?: string
  /** Size of the whole file, if known. */
  totalBytes?: number
  chunks: AsyncIterable<Uint8Array>
}

/** The source that an address refers to. */
export interface LocatedFile {
  source: ByteSource
  /** Set if the source is an archive; `member` is the path of the wanted file in it. */
  archive?: { format: 'tar.gz' | 'tar.bz2'; member: string }
}

/** The source has given a final negative answer. */
export class PermanentFailure extends Error {}
