import { randomUUID } from 'node:crypto'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  type CompletedPart,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { abortable } from '../shared/abortable-source.js'
import { alreadyExists } from '../shared/write-refusals.js'
import { type BlobBucket, writeIdField } from './blob-bucket.js'
import { isConditionFailure, isNotImplemented, unavailable } from './s3-failure.js'

/** Parts of one upload in flight. With the part that is being filled, at most three are in memory. */
const simultaneousParts = 2

export interface UploadRequest {
  bucket: BlobBucket
  key: string
  source: AsyncIterable<Uint8Array>
  contentType: string
  ifAbsent: boolean
  partBytes: number
  signal: AbortSignal
  /** The multipart upload that this write uses, as soon as there is one. */
  onUploadId(uploadId: string): void
}

export interface UploadedObject {
  writeId: string
  bytes: number
  etag: string
}

interface Part {
  number: number
  body: Buffer
}

/**
 * Streams the source into an object: one PUT if it is smaller than a part, else a multipart upload. If it throws, the
 * object is as it was and no parts are left (unless the server can no longer be reached; then `cleanUp` finds them).
 *
 * @throws as `BlobStore.put`.
 */
export async function upload(request: UploadRequest): Promise<UploadedObject> {
  const { bucket, key, contentType, partBytes } = request
  const { send } = bucket
  const writeId = randomUUID()
  const object = bucket.objectOf(key)
  const facts = { ...object, ContentType: contentType, Metadata: { [writeIdField]: writeId } }
  const stop = new AbortController()
  const signal = AbortSignal.any([request.signal, stop.signal])
  const parts = partsOf(abortable(request.source, signal), partBytes)
  try {
    const { value: first } = await parts.next()
    if (first?.body.byteLength === partBytes) return await putParts(first)
    const Body = first?.body ?? Buffer.alloc(0)
    const put = (IfNoneMatch?: string) => send(new PutObjectCommand({ ...facts, Body, IfNoneMatch }))
    return { writeId, bytes: Body.byteLength, etag: await commit(request, writeId, put) }
  } finally {
    void parts.return(undefined)
  }

  async function putParts(first: Part): Promise<UploadedObject> {
    const { UploadId } = await send(new CreateMultipartUploadCommand(facts)).catch(failToStore)
    const multipart = { ...object, UploadId }
    if (UploadId !== undefined) request.onUploadId(UploadId)
    try {
      const { sent, bytes } = await sendParts(first, multipart)
      const MultipartUpload = { Parts: sent.sort((a, b) => Number(a.PartNumber) - Number(b.PartNumber)) }
      const complete = (IfNoneMatch?: string) =>
        send(new CompleteMultipartUploadCommand({ ...multipart, MultipartUpload, IfNoneMatch }))
      return { writeId, bytes, etag: await commit(request, writeId, complete) }
    } catch (error) {
      await send(new AbortMultipartUploadCommand(multipart)).catch(() => {})
      throw error
    }
  }

  /** The first failure is the one to report; it ends the source and the other parts. */
  async function sendParts(
    first: Part,
    multipart: { Bucket: string; Key: string; UploadId: string | undefined },
  ): Promise<{ sent: CompletedPart[]; bytes: number }> {
    const sent: CompletedPart[] = []
    let bytes = 0
    let failure: { error: unknown } | undefined
    const sendOne = async ({ number: PartNumber, body: Body }: Part) => {
      const command = new UploadPartCommand({ ...multipart, PartNumber, Body })
      const { ETag } = await send(command, { abortSignal: signal }).catch(failToStore)
      sent.push({ PartNumber, ETag })
      bytes += Body.byteLength
    }
    const lane = async (part?: Part) => {
      try {
        for (let next = part ?? (await parts.next()).value; next; next = (await parts.next()).value) await sendOne(next)
      } catch (error) {
        failure ??= { error: request.signal.aborted ? request.signal.reason : error }
        stop.abort(failure.error)
      }
    }
    await Promise.all([lane(first), ...Array.from({ length: simultaneousParts - 1 }, () => lane())])
    if (failure) throw failure.error
    return { sent, bytes }
  }
}

/**
 * The request that makes the object visible. The signal does not interrupt it, because its outcome would be unknown;
 * if the client gives up, the object itself is checked. Returns the object's ETag.
 */
async function commit(
  { bucket, key, ifAbsent, signal }: UploadRequest,
  writeId: string,
  send: (ifNoneMatch: string | undefined) => Promise<{ ETag?: string }>,
): Promise<string> {
  signal.throwIfAborted()
  try {
    const { ETag } = await send(ifAbsent ? '*' : undefined).catch(async (error: unknown) => {
      // A server without conditional writes: checking first is the best option.
      if (!ifAbsent || !isNotImplemented(error) || (await bucket.head(key))) throw error
      return send(undefined)
    })
    return ETag ?? ''
  } catch (error) {
    const found = await bucket.head(key).catch(() => undefined)
    if (found?.writeId === writeId) return found.stat.etag
    if (ifAbsent && found && (isConditionFailure(error) || isNotImplemented(error))) throw alreadyExists(key)
    return failToStore(error)
  }
}

function failToStore(error: unknown): never {
  throw unavailable('The blob could not be stored', error)
}

/** Yields the bytes of the source in parts of `partBytes`, the last one smaller. */
async function* partsOf(
  source: AsyncIterable<Uint8Array>,
  partBytes: number,
): AsyncGenerator<Part, undefined, undefined> {
  let number = 1
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of source) {
    for (let start = 0; start < chunk.byteLength;) {
      // A copy: sources may reuse their buffers.
      const piece = Uint8Array.from(chunk.subarray(start, start + partBytes - bytes))
      pieces.push(piece)
      bytes += piece.byteLength
      start += piece.byteLength
      if (bytes < partBytes) continue
      // Emptied first, because the generator may wait here for a free lane.
      yield { number: number++, body: Buffer.concat(pieces.splice(0)) }
      bytes = 0
    }
  }
  if (bytes > 0) yield { number, body: Buffer.concat(pieces) }
}
