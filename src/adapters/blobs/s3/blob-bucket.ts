import { Readable } from 'node:stream'
import {
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  type S3Client,
} from '@aws-sdk/client-s3'
import { checkBlobKey } from '../../../core/engine/job/blob-keys.js'
import type { BlobEntry, BlobStat, ByteRange } from '../../../core/engine/ports/blob-store.js'
import { timedSend } from './plain-client.js'
import { asked, failureOf, isAbsent, isRangeBeyondEnd, unavailable } from './s3-failure.js'

export type BlobBucket = ReturnType<typeof blobBucket>

/** The store's requests to the server about the objects of its folder. */
export function blobBucket(
  client: S3Client,
  { bucket, prefix, requestTimeoutMs }: { bucket: string; prefix: string; requestTimeoutMs: number },
) {
  const send = timedSend(client, requestTimeoutMs)
  let isFound = false

  /** Names the object of a blob in requests. @throws StemworkError `INVALID_PARAMS` for an invalid key. */
  const objectOf = (key: string) => ({ Bucket: bucket, Key: prefix + checkBlobKey(key) })

  const find = async () => {
    await send(new HeadBucketCommand({ Bucket: bucket })).catch((error: unknown) => {
      if (failureOf(error).status !== 403) throw unavailable(`The bucket ${bucket} could not be found`, error)
    })
    isFound = true
  }

  const head = async (key: string) => {
    try {
      const found = await send(new HeadObjectCommand(objectOf(key)))
      return { stat: statOf(key, found, found.ContentLength ?? 0), writeId: found.Metadata?.[writeIdField] }
    } catch (error) {
      if (!isAbsent(error)) throw unavailable('The blob could not be looked up', error)
      // HEAD has no body to say whether it is the object or the bucket that is missing.
      if (!isFound) await find()
      return undefined
    }
  }

  /**
   * Opens a stream of the bytes `start` to `end` of an object.
   *
   * @param options.etag the version that the object must have
   */
  const open = async (
    key: string,
    range: ByteRange | undefined,
    { etag, signal }: { etag?: string; signal?: AbortSignal },
  ) => {
    const Range = range && `bytes=${range.start}-${range.end}`
    try {
      const command = new GetObjectCommand({ ...objectOf(key), Range, IfMatch: etag && `"${etag}"` })
      const answer = await send(command, { abortSignal: signal })
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
      const request = { Bucket: bucket, Prefix: prefix + folder, ContinuationToken }
      const page = await asked('Blobs could not be listed', () => send(new ListObjectsV2Command(request)))
      if (page.Contents?.length)
        yield page.Contents.map((object) => entryOf((object.Key ?? '').slice(prefix.length), object, object.Size ?? 0))
      ContinuationToken = page.IsTruncated ? page.NextContinuationToken : undefined
    } while (ContinuationToken !== undefined)
  }

  return { name: bucket, prefix, send, objectOf, head, open, pages }
}

/** Metadata with the id of the write that made an object: tells whether a write whose answer was lost has happened. */
export const writeIdField = 'stemwork-write'

/** Facts about an object in every answer of S3 that shows one. */
interface ObjectAnswer {
  ETag?: string
  LastModified?: Date
  ContentType?: string
}

export function entryOf(key: string, { ETag, LastModified }: ObjectAnswer, bytes: number): BlobEntry {
  return { key, bytes, etag: unquoted(ETag ?? ''), modifiedAt: wholeSeconds(LastModified) }
}

export function statOf(key: string, answer: ObjectAnswer, bytes: number): BlobStat {
  return { ...entryOf(key, answer, bytes), contentType: answer.ContentType ?? 'application/octet-stream' }
}

export function unquoted(etag: string): string {
  return etag.replace(/^(?:W\/)?"(.*)"$/, '$1')
}

/** Listings show milliseconds, other answers whole seconds: a blob must have one time. */
export function wholeSeconds(date = new Date()): number {
  return Math.floor(date.getTime() / 1000) * 1000
}
