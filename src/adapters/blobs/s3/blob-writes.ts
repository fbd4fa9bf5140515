import { DeleteObjectCommand } from '@aws-sdk/client-s3'
import { storeUnavailable } from '../../../core/engine/errors.js'
import type { BlobSource, BlobStat, PutOptions } from '../../../core/engine/ports/blob-store.js'
import { blobChunks } from '../shared/blob-chunks.js'
import { alreadyExists, folderDeleted } from '../shared/write-refusals.js'
import { checkBlobKey } from '../../../core/engine/job/blob-keys.js'
import { type BlobBucket, unquoted, wholeSeconds } from './blob-bucket.js'
import { upload, type UploadedObject } from './upload.js'

interface UnfinishedWrite {
  key: string
  revoked: AbortController
  uploadId: string | undefined
}

export type BlobWrites = ReturnType<typeof blobWrites>

/** The puts of this process. */
export function blobWrites(bucket: BlobBucket, partBytes: number) {
  const unfinished = new Set<UnfinishedWrite>()
  return {
    /** IDs of the multipart uploads in progress. */
    get uploadIds(): ReadonlySet<string | undefined> {
      return new Set([...unfinished].map(({ uploadId }) => uploadId))
    },

    /** Aborts the writes to a folder that is deleted. */
    revoke(folder: string): void {
      for (const { key, revoked } of unfinished) if (key.startsWith(folder)) revoked.abort(folderDeleted(key))
    },

    /** See `BlobStore.put`. */
    async put(
      key: string,
      source: BlobSource,
      { contentType = 'application/octet-stream', ifAbsent = false, signal }: PutOptions = {},
    ): Promise<BlobStat> {
      checkBlobKey(key)
      signal?.throwIfAborted()
      if (ifAbsent && (await bucket.head(key))) throw alreadyExists(key)
      const write: UnfinishedWrite = { key, revoked: new AbortController(), uploadId: undefined }
      unfinished.add(write)
      try {
        const made = await upload({
          bucket,
          key,
          source: blobChunks(source),
          contentType,
          ifAbsent,
          partBytes,
          signal: AbortSignal.any([write.revoked.signal, ...(signal ? [signal] : [])]),
          onUploadId: (uploadId) => (write.uploadId = uploadId),
        })
        return await published(bucket, write, made, contentType)
      } finally {
        unfinished.delete(write)
      }
    },
  }
}

async function published(
  bucket: BlobBucket,
  { key, revoked }: UnfinishedWrite,
  made: UploadedObject,
  contentType: string,
): Promise<BlobStat> {
  const found = await bucket.head(key).catch(() => undefined)
  const isOurs = found?.writeId === made.writeId
  const isDamaged = isOurs && found.stat.bytes !== made.bytes
  if (isOurs && (revoked.signal.aborted || isDamaged)) await bucket.send(new DeleteObjectCommand(bucket.objectOf(key)))
  if (revoked.signal.aborted) throw folderDeleted(key)
  if (isDamaged)
    throw storeUnavailable(
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
