import {
  AbortMultipartUploadCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  type MultipartUpload,
  type S3Client,
} from '@aws-sdk/client-s3'
import { isAbsentUpload, isNotImplemented } from './s3-failure.js'

export interface UploadSelection {
  /** Beginning of the object keys. */
  prefix: string
  /** Only uploads that got no part since; epoch milliseconds of the server's clock. */
  idleSince?: number
  isKept?(uploadId: string): boolean
}

/** Aborts unfinished multipart uploads and frees their parts. Returns how many there were. */
export async function abortUploads(
  send: S3Client['send'],
  bucket: string,
  { prefix, idleSince = Infinity, isKept = () => false }: UploadSelection,
): Promise<number> {
  let aborted = 0
  for await (const { Key, UploadId, Initiated } of unfinishedUploads(send, bucket, prefix)) {
    // Checked again, for servers that do not filter by prefix.
    if (!Key?.startsWith(prefix) || !UploadId || isKept(UploadId) || (Initiated?.getTime() ?? 0) >= idleSince) continue
    // Another process may write a large file for longer than the age given.
    if (idleSince !== Infinity && (await hasPartSince(send, { Bucket: bucket, Key, UploadId }, idleSince))) continue
    await send(new AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId })).catch((error: unknown) => {
      if (!isAbsentUpload(error)) throw error
    })
    aborted++
  }
  return aborted
}

async function* unfinishedUploads(
  send: S3Client['send'],
  bucket: string,
  prefix: string,
): AsyncGenerator<MultipartUpload, void, void> {
  let KeyMarker: string | undefined
  let UploadIdMarker: string | undefined
  do {
    const page = await send(
      new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: prefix, KeyMarker, UploadIdMarker }),
    ).catch((error: unknown) => {
      // Without this request, the server or a lifecycle rule of its bucket has to abort them.
      if (isNotImplemented(error)) return undefined
      throw error
    })
    yield* page?.Uploads ?? []
    KeyMarker = page?.IsTruncated ? page.NextKeyMarker : undefined
    UploadIdMarker = page?.NextUploadIdMarker
  } while (KeyMarker !== undefined)
}

async function hasPartSince(
  send: S3Client['send'],
  upload: { Bucket: string; Key: string; UploadId: string },
  time: number,
): Promise<boolean> {
  let PartNumberMarker: string | undefined
  do {
    const page = await send(new ListPartsCommand({ ...upload, PartNumberMarker })).catch((error: unknown) => {
      // Ended meanwhile, or on a server that lists no parts: the age of the upload decides.
      if (isAbsentUpload(error) || isNotImplemented(error)) return undefined
      throw error
    })
    if (page?.Parts?.some(({ LastModified }) => (LastModified?.getTime() ?? 0) >= time)) return true
    PartNumberMarker = page?.IsTruncated ? page.NextPartNumberMarker : undefined
  } while (PartNumberMarker !== undefined)
  return false
}
