import { AbortMultipartUploadCommand, ListMultipartUploadsCommand, type S3Client } from '@aws-sdk/client-s3'
import { isAbsentUpload, isNotImplemented } from './s3-failure.js'

export interface UploadSelection {
  /** Beginning of the object keys. */
  prefix: string
  /** Epoch milliseconds of the server's clock. */
  startedBefore?: number
  isKept?(uploadId: string): boolean
}

/** Aborts the multipart uploads that were begun and not ended, and frees their parts. Returns how many there were. */
export async function abortUploads(
  client: S3Client,
  bucket: string,
  { prefix, startedBefore = Infinity, isKept = () => false }: UploadSelection,
): Promise<number> {
  let aborted = 0
  let KeyMarker: string | undefined
  let UploadIdMarker: string | undefined
  do {
    const page = await client
      .send(new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: prefix, KeyMarker, UploadIdMarker }))
      .catch((error: unknown) => {
        // Without this request the server, or a rule of its bucket, has to end them.
        if (isNotImplemented(error)) return undefined
        throw error
      })
    for (const { Key, UploadId, Initiated } of page?.Uploads ?? []) {
      // The prefix again, for servers that do not filter by it.
      if (!Key?.startsWith(prefix) || !UploadId || isKept(UploadId) || (Initiated?.getTime() ?? 0) >= startedBefore)
        continue
      await client.send(new AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId })).catch((error: unknown) => {
        if (!isAbsentUpload(error)) throw error
      })
      aborted++
    }
    KeyMarker = page?.IsTruncated ? page.NextKeyMarker : undefined
    UploadIdMarker = page?.NextUploadIdMarker
  } while (KeyMarker !== undefined)
  return aborted
}
