import { DeleteObjectCommand } from '@aws-sdk/client-s3'
import { StemworkError } from '../../../core/engine/errors.js'
import type { BlobSource, BlobStat, PutOptions } from '../../../core/engine/ports/blob-store.js'
import { blobChunks } from '../shared/blob-chunks.js'
import { alreadyExists, folderDeleted } from '../shared/write-refusals.js'
import type { BlobBucket } from './blob-bucket.js'
import { unquoted, wholeSeconds } from './object-facts.js'
import { upload, type UploadedObject } from './upload.js'

interface UnfinishedWrite {
  key: string
  revoked: AbortController
  uploadId: string | undefined
}

/** The puts of this process. */
export class BlobWrites {
  readonly #bucket: BlobBucket
  readonly #partBytes: number
  readonly #unfinished = new Set<UnfinishedWrite>()

  constructor(bucket: BlobBucket, partBytes: number) {
    this.#bucket = bucket
    this.#partBytes = partBytes
  }

  /** IDs of the multipart uploads in progress. */
  get uploadIds(): ReadonlySet<string | undefined> {
    return new Set([...this.#unfinished].map(({ uploadId }) => uploadId))
  }

  /** Ends the writes of a folder that is deleted. */
  revoke(folder: string): void {
    for (const { key, revoked } of this.#unfinished) if (key.startsWith(folder)) revoked.abort(folderDeleted(key))
  }

  /** See `BlobStore.put`. */
  async put(
    key: string,
    source: BlobSource,
    { contentType = 'application/octet-stream', ifAbsent = false, signal }: PutOptions = {},
  ): Promise<BlobStat> {
    const { Bucket: bucket, Key: objectKey } = this.#bucket.objectOf(key)
    signal?.throwIfAborted()
    if (ifAbsent && (await this.#bucket.head(key))) throw alreadyExists(key)
    const write: UnfinishedWrite = { key, revoked: new AbortController(), uploadId: undefined }
    this.#unfinished.add(write)
    try {
      const made = await upload({
        send: this.#bucket.send,
        bucket,
        key,
        objectKey,
        source: blobChunks(source),
        contentType,
        ifAbsent,
        partBytes: this.#partBytes,
        signal: AbortSignal.any([write.revoked.signal, ...(signal ? [signal] : [])]),
        onUploadId: (uploadId) => (write.uploadId = uploadId),
        current: async () => {
          const found = await this.#bucket.head(key)
          return found && { etag: found.stat.etag, writeId: found.writeId }
        },
      })
      return await this.#published(write, made, contentType)
    } finally {
      this.#unfinished.delete(write)
    }
  }

  async #published(write: UnfinishedWrite, made: UploadedObject, contentType: string): Promise<BlobStat> {
    const { key, revoked } = write
    const found = await this.#bucket.head(key).catch(() => undefined)
    const isOurs = found?.writeId === made.writeId
    const isDamaged = isOurs && found.stat.bytes !== made.bytes
    if (isOurs && (revoked.signal.aborted || isDamaged))
      await this.#bucket.send(new DeleteObjectCommand(this.#bucket.objectOf(key)))
    if (revoked.signal.aborted) throw folderDeleted(key)
    if (isDamaged)
      throw new StemworkError(
        'STORE_UNAVAILABLE',
        `The S3 server stored ${found.stat.bytes} bytes of ${made.bytes}. It does not understand how the client ` +
          'sends bodies; use another server or client version.',
      )
    return {
      key,
      bytes: made.bytes,
      contentType,
      etag: unquoted(made.etag),
      modifiedAt: isOurs ? found.stat.modifiedAt : wholeSeconds(),
    }
  }
}
