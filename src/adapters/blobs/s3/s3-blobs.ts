import { blobChunks } from '../shared/blob-chunks.js'
import { Readable } from 'node:stream'
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { StemworkError } from '../../../core/engine/errors.js'
import { attachment } from '../../../core/engine/job/attachment.js'
import { checkBlobKey, checkBlobPrefix } from '../../../core/engine/job/blob-keys.js'
import type { BlobEntry, BlobStat, BlobStore } from '../../../core/engine/ports/blob-store.js'
import { deleteObjects } from './delete-objects.js'
import { objectBody } from './object-body.js'
import { plainClient } from './plain-client.js'
import { entryOf, statOf, unquoted, wholeSeconds } from './object-facts.js'
import { alreadyExists, failureOf, isAbsent, isRangeBeyondEnd, unavailable } from './s3-failure.js'
import { abortUploads } from './unfinished-uploads.js'
import { upload, type UploadedObject, writeIdField } from './upload.js'

export interface S3BlobsOptions {
  /**
   * The host's client: it sets region, endpoint, path style, credentials and retries, and closes it. Checksums are sent
   * and checked only where S3 demands them (`WHEN_REQUIRED`), whatever the client is set to.
   */
  client: S3Client
  bucket: string
  /** Folder inside the bucket, such as `media/`. Default: the bucket is this store's alone. */
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
   * milliseconds; for what a call sends, it has 4 s more per MiB. Default: 20,000. A `requestTimeout` of the client
   * that is shorter leaves time for its retries.
   */
  requestTimeoutMs?: number
}

const minPartBytes = 5 * 1024 * 1024
/** The longest time that Signature Version 4 allows for a link. */
const maxLinkSeconds = 7 * 24 * 60 * 60

interface UnfinishedWrite {
  key: string
  revoked: AbortController
  uploadId: string | undefined
}

interface HeadedObject {
  stat: BlobStat
  writeId: string | undefined
}

/**
 * Files in a bucket of S3 or of a server that speaks its protocol (MinIO, R2, Ceph, SeaweedFS). The credentials need to
 * get, put, delete and list objects, and to list and abort multipart uploads.
 *
 * `etag` is the server's: it stays when a blob is replaced by equal bytes. `ifAbsent` is atomic where the server
 * honours `If-None-Match: *` (AWS, MinIO, R2); elsewhere two writers that race may both succeed, and the last one's
 * bytes stay.
 *
 * @example
 * const client = new S3Client({ region: 'auto', endpoint: 'http://127.0.0.1:9000', forcePathStyle: true, credentials })
 * const engine = createEngine({ blobs: s3Blobs({ client, bucket: 'media' }) })
 */
export function s3Blobs(options: S3BlobsOptions): BlobStore {
  const { bucket, prefix = '', partBytes = minPartBytes, requestTimeoutMs = 20_000 } = options
  if (prefix !== '') checkBlobPrefix(prefix)
  if (!(partBytes >= minPartBytes))
    throw new StemworkError(
      'INVALID_OPTIONS',
      `partBytes is ${partBytes}. S3 takes parts of at least ${minPartBytes} bytes.`,
    )
  const client = plainClient(options.client, requestTimeoutMs)
  const linkClient = options.linkClient ? plainClient(options.linkClient, requestTimeoutMs) : client
  const unfinished = new Set<UnfinishedWrite>()
  let bucketFound = false

  return {
    traits: { scope: 'shared' },

    async put(key, source, { contentType = 'application/octet-stream', ifAbsent = false, signal } = {}) {
      checkBlobKey(key)
      signal?.throwIfAborted()
      if (ifAbsent && (await head(key))) throw alreadyExists(key)
      const write: UnfinishedWrite = { key, revoked: new AbortController(), uploadId: undefined }
      unfinished.add(write)
      try {
        const made = await upload({
          client,
          bucket,
          key,
          objectKey: prefix + key,
          source: blobChunks(source),
          contentType,
          ifAbsent,
          partBytes,
          signal: AbortSignal.any([write.revoked.signal, ...(signal ? [signal] : [])]),
          onUploadId: (uploadId) => (write.uploadId = uploadId),
          current: async () => {
            const found = await head(key)
            return found && { etag: found.stat.etag, writeId: found.writeId }
          },
        })
        return await published(write, made, contentType)
      } finally {
        unfinished.delete(write)
      }
    },

    async get(key, { range, signal } = {}) {
      checkBlobKey(key)
      signal?.throwIfAborted()
      const found = await open(key, range, { signal })
      if (!found) return undefined
      const { stat, first, start, end } = found
      const reopen = async (position: number) => {
        const again = await open(key, { start: position, end }, { etag: stat.etag, signal })
        if (!again) throw unavailable('The blob was deleted while it was read', undefined)
        return again.first
      }
      return { stat, body: objectBody(first, { start, end }, reopen, { signal, idleTimeoutMs: requestTimeoutMs }) }
    },

    async stat(key) {
      return (await head(checkBlobKey(key)))?.stat
    },

    async delete(key) {
      checkBlobKey(key)
      await asked('The blob could not be deleted', () =>
        client.send(new DeleteObjectCommand({ Bucket: bucket, Key: prefix + key })),
      )
    },

    async deletePrefix(folder) {
      checkBlobPrefix(folder)
      for (const write of unfinished) if (write.key.startsWith(folder)) write.revoked.abort(revokedError(write.key))
      // Writes of other processes: their last request finds its upload gone.
      await asked('Unfinished uploads could not be listed and aborted', () =>
        abortUploads(client, bucket, { prefix: prefix + folder }),
      )
      let removed = 0
      for await (const page of pages(folder)) {
        await asked('Blobs could not be deleted', () =>
          deleteObjects(
            client,
            bucket,
            page.map((entry) => prefix + entry.key),
          ),
        )
        removed += page.length
      }
      return removed
    },

    async *list(folder) {
      checkBlobPrefix(folder)
      for await (const page of pages(folder)) yield* page
    },

    async cleanUp(olderThanMs) {
      const own = new Set([...unfinished].map(({ uploadId }) => uploadId))
      return asked('Unfinished uploads could not be listed and aborted', () =>
        abortUploads(client, bucket, {
          prefix,
          idleSince: Date.now() - olderThanMs,
          isKept: (uploadId) => own.has(uploadId),
        }),
      )
    },

    async signGet(key, { expiresInSeconds, fileName, contentType }) {
      const command = new GetObjectCommand({
        Bucket: bucket,
        Key: prefix + checkBlobKey(key),
        ResponseContentDisposition: attachment(fileName),
        ResponseContentType: contentType,
      })
      return getSignedUrl(linkClient, command, { expiresIn: Math.min(expiresInSeconds, maxLinkSeconds) })
    },

    async signPut(key, { expiresInSeconds }) {
      const command = new PutObjectCommand({ Bucket: bucket, Key: prefix + checkBlobKey(key) })
      return getSignedUrl(linkClient, command, { expiresIn: Math.min(expiresInSeconds, maxLinkSeconds) })
    },
  }

  async function published(write: UnfinishedWrite, made: UploadedObject, contentType: string): Promise<BlobStat> {
    const { key } = write
    const found = await head(key).catch(() => undefined)
    const isOurs = found?.writeId === made.writeId
    const isDamaged = isOurs && found.stat.bytes !== made.bytes
    if (isOurs && (write.revoked.signal.aborted || isDamaged))
      await client.send(new DeleteObjectCommand({ Bucket: bucket, Key: prefix + key }))
    if (write.revoked.signal.aborted) throw revokedError(key)
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

  async function head(key: string): Promise<HeadedObject | undefined> {
    try {
      const found = await client.send(new HeadObjectCommand({ Bucket: bucket, Key: prefix + key }))
      return { stat: statOf(key, found, found.ContentLength ?? 0), writeId: found.Metadata?.[writeIdField] }
    } catch (error) {
      if (!isAbsent(error)) throw unavailable('The blob could not be looked up', error)
      // HEAD has no body to say whether it is the object or the bucket that is missing.
      if (!bucketFound) await findBucket()
      return undefined
    }
  }

  async function findBucket(): Promise<void> {
    await client.send(new HeadBucketCommand({ Bucket: bucket })).catch((error: unknown) => {
      if (failureOf(error).status !== 403) throw unavailable(`The bucket ${bucket} could not be found`, error)
    })
    bucketFound = true
  }

  async function open(
    key: string,
    range: { start: number; end: number } | undefined,
    { etag, signal }: { etag?: string; signal?: AbortSignal },
  ) {
    const Range = range && `bytes=${range.start}-${range.end}`
    try {
      const answer = await client.send(
        new GetObjectCommand({ Bucket: bucket, Key: prefix + key, Range, IfMatch: etag && `"${etag}"` }),
        { abortSignal: signal },
      )
      const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.ContentRange ?? '')?.map(Number) ?? []
      const bytes = total ?? answer.ContentLength ?? 0
      return {
        stat: statOf(key, answer, bytes),
        first: answer.Body as Readable,
        start: first ?? 0,
        end: last ?? bytes - 1,
      }
    } catch (error) {
      signal?.throwIfAborted()
      if (isAbsent(error)) return undefined
      if (!isRangeBeyondEnd(error)) throw unavailable('The blob could not be read', error)
      const found = await head(key)
      return found && { stat: found.stat, first: Readable.from([]), start: 0, end: -1 }
    }
  }

  async function* pages(folder: string): AsyncGenerator<BlobEntry[], void, void> {
    let ContinuationToken: string | undefined
    do {
      const page = await asked('Blobs could not be listed', () =>
        client.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix + folder, ContinuationToken })),
      )
      if (page.Contents?.length)
        yield page.Contents.map((object) => entryOf((object.Key ?? '').slice(prefix.length), object, object.Size ?? 0))
      ContinuationToken = page.IsTruncated ? page.NextContinuationToken : undefined
    } while (ContinuationToken !== undefined)
  }
}

async function asked<Result>(failure: string, request: () => Promise<Result>): Promise<Result> {
  try {
    return await request()
  } catch (error) {
    throw unavailable(failure, error)
  }
}

function revokedError(key: string): StemworkError {
  return new StemworkError(
    'STORE_UNAVAILABLE',
    `The folder of ${key} was deleted while the blob was being written. Write it again.`,
    { retryable: true },
  )
}
