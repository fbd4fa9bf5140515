/** Where the bytes of one file come from. */
export interface ByteSource {
  /** For messages, and to tell whether a partial file belongs to this source. */
  readonly name: string
  /**
   * Starts to read at `from`, or at 0 where that is not possible or where the file has changed since `validator` was given out.
   *
   * @throws PermanentFailure when asking again cannot help; any other error may pass
   */
  open(request: ReadRequest): Promise<OpenedBytes>
}

export interface ReadRequest {
  from: number
  /** As an earlier `open` gave it. */
  validator?: string
  signal: AbortSignal
}

export interface OpenedBytes {
  /** Offset of the first byte in `chunks`. */
  from: number
  /** Names this version of the file. */
  validator?: string
  /** Size of the whole file, if known. */
  totalBytes?: number
  chunks: AsyncIterable<Uint8Array>
}

/** Where an address leads. */
export interface LocatedFile {
  source: ByteSource
  /** The source is an archive, and the path of the wanted file in it. */
  archive?: { format: 'tar.gz' | 'tar.bz2'; member: string }
}

/** The source has answered, and the answer is no. */
export class PermanentFailure extends Error {}
