import type { RequestOptions } from './connection.js'

/**
 * Data to send: a `File` or other `Blob`, bytes, or a stream of bytes. In Node, `fs.openAsBlob(path)` opens a file as a
 * Blob. Node takes the size of such a Blob modulo 4 GiB (nodejs/node#52585), so larger files would lose their end: send
 * them as `fs.createReadStream(path)`.
 */
export type UploadSource = Blob | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>

export interface TransferProgress {
  /** Bytes handed to the network so far. */
  bytes: number
  /** Total bytes; undefined for a stream of unknown length. */
  totalBytes: number | undefined
}

export interface TransferOptions extends RequestOptions {
  onProgress?(progress: TransferProgress): void
}

export function isWhole(source: UploadSource): source is Blob | Uint8Array {
  return source instanceof Uint8Array || source instanceof Blob
}

export function sizeOf(source: Blob | Uint8Array): number {
  return source instanceof Uint8Array ? source.byteLength : source.size
}
