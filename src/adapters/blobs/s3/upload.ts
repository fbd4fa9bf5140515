import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { abortable } from '../shared/abortable-source.js'
import { alreadyExists, isConditionFailure, isNotImplemented, unavailable } from './s3-failure.js'

/**
 * Parts of one upload on their way at a time. With the part that is being filled, at most about four parts are in
 * memory.
 */
const simultaneousParts = 2

/** Metadata that names the write that made an object: it tells whether a write whose answer was lost has happened. */
export const writeIdField = 'stemwork-write'

export interface UploadRequest {
  client: S3Client
  bucket: string
  /** Key of the blob; the object's key may begin with a prefix. */
  key: string
  objectKey: string
  source: AsyncIterable<Uint8Array>
  contentType: string
  ifAbsent: boolean
  partBytes: number
  signal: AbortSignal
  /** The multipart upload that this write uses, as soon as there is one. */
  onUploadId(uploadId: string): void
  /** The object that is under the key at this moment. */
  current(): Promise<{ etag: string; writeId: string | undefined } | undefined>
}

export interface UploadedObject {
  writeId: string
  bytes: number
  etag: string
}

/**
 * Streams the source into an object: one PUT if it is smaller than a part, else a multipart upload. If it throws, the
 * object is as it was and no parts are left (unless the server can no longer be reached; then `cleanUp` finds them).
 *
 * @throws as `BlobStore.put`.
 */
export async function upload(request: UploadRequest): Promise<UploadedObject> {
  const { client, bucket, key, objectKey, contentType, ifAbsent, partBytes } = request
  const writeId = randomUUID()
  const stop = new AbortController()
  const signal = AbortSignal.any([request.signal, stop.signal])
  let failure: { error: unknown } | undefined
  let bytes = 0

  /**
   * The first failure is the one to report; it ends the source and the other parts, which lib-storage would send to the
   * end.
   */
  const fail = (error: unknown): never => {
    failure ??= { error: request.signal.aborted ? request.signal.reason : error }
    stop.abort(failure.error)
    throw error
  }
  const failToStore = (error: unknown): never => fail(unavailable('The blob could not be stored', error))

  async function* chunks(): AsyncGenerator<Uint8Array, void, void> {
    try {
      for await (const chunk of abortable(request.source, signal)) {
        bytes += chunk.byteLength
        // A copy: sources may use their buffer again, and the parts keep references.
        if (chunk.byteLength > 0) yield Uint8Array.from(chunk)
      }
    } catch (error) {
      fail(error)
    }
  }

  /**
   * The request that makes the object visible. `signal` does not interrupt it, because its outcome would be unknown; if
   * the client gives up, the object itself is checked.
   */
  async function commit<Output>(
    send: (ifNoneMatch: string | undefined) => Promise<Output>,
  ): Promise<Output | { ETag: string }> {
    if (signal.aborted) return fail(signal.reason)
    try {
      return await send(ifAbsent ? '*' : undefined).catch(async (error: unknown) => {
        // A server without conditional writes: checking first is the best option.
        if (!ifAbsent || !isNotImplemented(error) || (await request.current())) throw error
        return send(undefined)
      })
    } catch (error) {
      const found = await request.current().catch(() => undefined)
      if (found?.writeId === writeId) return { ETag: found.etag }
      if (ifAbsent && found && (isConditionFailure(error) || isNotImplemented(error))) return fail(alreadyExists(key))
      return failToStore(error)
    }
  }

  const through = Object.create(client, {
    send: {
      value: async (command: unknown): Promise<unknown> => {
        if (command instanceof PutObjectCommand)
          return commit((IfNoneMatch) => client.send(new PutObjectCommand({ ...command.input, IfNoneMatch })))
        if (command instanceof CompleteMultipartUploadCommand)
          return commit((IfNoneMatch) =>
            client.send(new CompleteMultipartUploadCommand({ ...command.input, IfNoneMatch })),
          )
        if (command instanceof UploadPartCommand)
          return client.send(command, { abortSignal: signal }).catch(failToStore)
        if (!(command instanceof CreateMultipartUploadCommand)) return client.send(command as UploadPartCommand)
        const created = await client.send(command).catch(failToStore)
        if (created.UploadId !== undefined) request.onUploadId(created.UploadId)
        return created
      },
    },
  }) as S3Client

  try {
    const done = await new Upload({
      client: through,
      params: {
        Bucket: bucket,
        Key: objectKey,
        ContentType: contentType,
        Metadata: { [writeIdField]: writeId },
        Body: Readable.from(chunks(), { highWaterMark: 1 }),
      },
      partSize: partBytes,
      queueSize: simultaneousParts,
    }).done()
    return { writeId, bytes, etag: done.ETag ?? '' }
  } catch (error) {
    throw failure ? failure.error : unavailable('The blob could not be stored', error)
  }
}
