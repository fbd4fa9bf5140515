import { DeleteObjectCommand, GetObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3'
import { invalidOptions, requireOption, requirePackage } from '../../../core/engine/errors.js'
import { attachment } from '../../../core/engine/job/attachment.js'
import { checkBlobKey, checkBlobPrefix } from '../../../core/engine/job/blob-keys.js'
import type { BlobStore } from '../../../core/engine/ports/blob-store.js'
import { type BlobBucket, blobBucket } from './blob-bucket.js'
import { type BlobWrites, blobWrites } from './blob-writes.js'
import { deleteObjects } from './delete-objects.js'
import { objectBody } from './object-body.js'
import { plainClient } from './plain-client.js'
import { asked, unavailable } from './s3-failure.js'
import { abortUploads } from './unfinished-uploads.js'

export interface S3BlobsOptions {
  /**
   * The host's client: it sets region, endpoint, path style, credentials and retries, and closes it. Checksums are sent
   * and checked only where S3 demands them (`WHEN_REQUIRED`), whatever the client is set to.
   */
  client: S3Client
  bucket: string
  /** Folder inside the bucket, such as `media/`. Default: none; the bucket is this store's alone. */
  prefix?: string
  /** Bytes of a part of a multipart upload, at least 5 MiB; a blob has at most 10,000 parts. Default: 5 MiB. */
  partBytes?: number
  /**
   * Signs links with this client instead, for example one whose endpoint is the server's public address. Default:
   * `client`.
   */
  linkClient?: S3Client
  /**
   * How long the server may take for a call, all retries of the client together, and between two pieces of a body, in
   * milliseconds; for what a call sends, it has 4 s more per MiB, and to join the parts of a blob 0.25 s per part.
   * Default: 20,000. A `requestTimeout` of the client that is shorter leaves time for its retries.
   */
  requestTimeoutMs?: number
}

const minPartBytes = 5 * 1024 * 1024
/** The longest time that Signature Version 4 allows for a link. */
const maxLinkSeconds = 7 * 24 * 60 * 60

/**
 * Files in a bucket of S3 or of a server that speaks its protocol (MinIO, R2, Ceph, SeaweedFS). The credentials need to
 * get, put, delete and list objects, and to list and abort multipart uploads.
 *
 * `etag` is the server's: it stays when a blob is replaced by equal bytes. `ifAbsent` is atomic where the server
 * honours `If-None-Match: *` (AWS, MinIO, R2); elsewhere two writers that race may both succeed, and the last one's
 * bytes stay.
 *
 * @throws StemworkError `INVALID_OPTIONS`; `MISSING_DEPENDENCY` without the package `@aws-sdk/s3-request-presigner`
 * @example
 * const client = new S3Client({ region: 'auto', endpoint: 'http://127.0.0.1:9000', forcePathStyle: true, credentials })
 * const engine = createEngine({ blobs: s3Blobs({ client, bucket: 'media' }) })
 */
export function s3Blobs(options: S3BlobsOptions): BlobStore {
  const isGiven = typeof options?.client?.send === 'function' && typeof options.bucket === 'string'
  requireOption(isGiven, options, "s3Blobs({ client, bucket: 'media' })", 'an S3Client and the name of a bucket')
  const { prefix = '', partBytes = minPartBytes, requestTimeoutMs = 20_000 } = options
  if (prefix !== '') checkBlobPrefix(prefix)
  if (!(partBytes >= minPartBytes))
    throw invalidOptions(`partBytes is ${partBytes}. S3 takes parts of at least ${minPartBytes} bytes.`)
  requirePackage('s3Blobs', '@aws-sdk/s3-request-presigner')
  const client = plainClient(options.client)
  const bucket = blobBucket(client, { bucket: options.bucket, prefix, requestTimeoutMs })
  const writes = blobWrites(bucket, partBytes)
  return {
    traits: { scope: 'shared' },
    put: (key, source, putOptions) => writes.put(key, source, putOptions),
    ...blobReads(bucket, requestTimeoutMs),
    ...blobRemovals(bucket, writes),
    ...blobLinks(bucket, options.linkClient ? plainClient(options.linkClient) : client),
  }
}

function blobReads(bucket: BlobBucket, idleTimeoutMs: number): Pick<BlobStore, 'get' | 'stat' | 'list'> {
  return {
    async get(key, { range, signal } = {}) {
      checkBlobKey(key)
      signal?.throwIfAborted()
      const found = await bucket.open(key, range, { signal })
      if (!found) return undefined
      const { stat, first, start, end } = found
      const reopen = async (position: number) => {
        const again = await bucket.open(key, { start: position, end }, { etag: stat.etag, signal })
        if (!again) throw unavailable('The blob was deleted while it was read', undefined)
        return again.first
      }
      return { stat, body: objectBody(first, { start, end }, reopen, { signal, idleTimeoutMs }) }
    },

    async stat(key) {
      return (await bucket.head(checkBlobKey(key)))?.stat
    },

    async *list(folder) {
      checkBlobPrefix(folder)
      for await (const page of bucket.pages(folder)) yield* page
    },
  }
}

function blobRemovals(bucket: BlobBucket, writes: BlobWrites): Pick<BlobStore, 'delete' | 'deletePrefix' | 'cleanUp'> {
  const { send, name, prefix } = bucket
  const abortUnfinished = (selection: Parameters<typeof abortUploads>[2]) =>
    asked('Unfinished uploads could not be listed and aborted', () => abortUploads(send, name, selection))

  return {
    async delete(key) {
      const command = new DeleteObjectCommand(bucket.objectOf(key))
      await asked('The blob could not be deleted', () => send(command))
    },

    async deletePrefix(folder) {
      checkBlobPrefix(folder)
      writes.revoke(folder)
      // For writes of other processes: their last request finds its upload gone.
      await abortUnfinished({ prefix: prefix + folder })
      let removed = 0
      for await (const page of bucket.pages(folder)) {
        const objectKeys = page.map(({ key }) => prefix + key)
        await asked('Blobs could not be deleted', () => deleteObjects(send, name, objectKeys))
        removed += page.length
      }
      return removed
    },

    cleanUp(before) {
      const own = writes.uploadIds
      return abortUnfinished({ prefix, idleSince: before, isKept: (uploadId) => own.has(uploadId) })
    },
  }
}

function blobLinks(bucket: BlobBucket, client: S3Client): Required<Pick<BlobStore, 'signGet' | 'signPut'>> {
  const sign = async (command: GetObjectCommand | PutObjectCommand, seconds: number) => {
    // Imported late, so that its absence is reported above.
    const { getSignedUrl } = await import('@aws-sdk/s3-request-presigner')
    return getSignedUrl(client, command, { expiresIn: Math.min(seconds, maxLinkSeconds) })
  }
  return {
    async signGet(key, { expiresInSeconds, fileName, contentType }) {
      const answer = { ResponseContentDisposition: attachment(fileName), ResponseContentType: contentType }
      return sign(new GetObjectCommand({ ...bucket.objectOf(key), ...answer }), expiresInSeconds)
    },

    async signPut(key, { expiresInSeconds }) {
      return sign(new PutObjectCommand(bucket.objectOf(key)), expiresInSeconds)
    },
  }
}
