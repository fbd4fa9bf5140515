import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { open, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { CheckedBody } from './body.js'
import { S3Error } from './s3-error.js'

export interface StoredObject {
  key: string
  file: string
  bytes: number
  /** Including its quotes. */
  etag: string
  /** Content type and metadata, as they were sent. */
  headers: Record<string, string>
  modifiedAt: Date
}

export interface MultipartUpload {
  id: string
  key: string
  headers: Record<string, string>
  initiatedAt: Date
  parts: Map<number, StoredPart>
}

interface StoredPart {
  file: string
  bytes: number
  md5: string
  storedAt: Date
}

export interface Condition {
  ifNoneMatch?: string
  ifMatch?: string
}

const minPartBytes = 5 * 1024 * 1024

/** Objects as files of a folder, with their names and headers in memory. */
export class Bucket {
  readonly #directory: string
  readonly #objects = new Map<string, StoredObject>()
  readonly uploads = new Map<string, MultipartUpload>()

  constructor(directory: string) {
    this.#directory = directory
  }

  get(key: string): StoredObject {
    const object = this.#objects.get(key)
    if (!object) throw new S3Error(404, 'NoSuchKey', 'The specified key does not exist.')
    return object
  }

  /** Keys in the order of their UTF-8 bytes, as S3 lists them. */
  keys(prefix: string): string[] {
    return [...this.#objects.keys()]
      .filter((key) => key.startsWith(prefix))
      .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  }

  async put(
    key: string,
    body: CheckedBody,
    headers: Record<string, string>,
    condition: Condition,
  ): Promise<StoredObject> {
    const file = await this.#store(body.chunks)
    return this.#commit(
      { key, file: file.path, bytes: file.bytes, etag: `"${body.md5()}"`, headers, modifiedAt: new Date() },
      condition,
    )
  }

  async delete(key: string): Promise<void> {
    const object = this.#objects.get(key)
    this.#objects.delete(key)
    // A download in progress keeps the file open.
    if (object) await rm(object.file, { force: true })
  }

  beginUpload(key: string, headers: Record<string, string>): MultipartUpload {
    const upload = { id: randomUUID(), key, headers, initiatedAt: new Date(), parts: new Map<number, StoredPart>() }
    this.uploads.set(upload.id, upload)
    return upload
  }

  async putPart(key: string, uploadId: string, number: number, body: CheckedBody): Promise<StoredPart> {
    this.upload(key, uploadId)
    const file = await this.#store(body.chunks)
    const part = { file: file.path, bytes: file.bytes, md5: body.md5(), storedAt: new Date() }
    const upload = this.uploads.get(uploadId)
    if (!upload) {
      await rm(part.file)
      throw new S3Error(404, 'NoSuchUpload')
    }
    const replaced = upload.parts.get(number)
    upload.parts.set(number, part)
    if (replaced) await rm(replaced.file)
    return part
  }

  async completeUpload(
    key: string,
    uploadId: string,
    wanted: { number: number; etag: string }[],
    condition: Condition,
  ): Promise<StoredObject> {
    const upload = this.upload(key, uploadId)
    if (wanted.some(({ number }, index) => index > 0 && wanted[index - 1]!.number >= number))
      throw new S3Error(400, 'InvalidPartOrder')
    const parts = wanted.map(({ number, etag }, index) => {
      const part = upload.parts.get(number)
      if (!part || `"${part.md5}"` !== etag) throw new S3Error(400, 'InvalidPart')
      if (index < wanted.length - 1 && part.bytes < minPartBytes) throw new S3Error(400, 'EntityTooSmall')
      return part
    })
    if (parts.length === 0) throw new S3Error(400, 'MalformedXML')
    this.#check(key, condition)
    const file = await this.#store(contentOf(parts))
    const etag = createHash('md5')
      .update(Buffer.concat(parts.map((part) => Buffer.from(part.md5, 'hex'))))
      .digest('hex')
    const object = await this.#commit(
      {
        key,
        file: file.path,
        bytes: file.bytes,
        etag: `"${etag}-${parts.length}"`,
        headers: upload.headers,
        modifiedAt: new Date(),
      },
      condition,
    )
    await this.abortUpload(key, uploadId)
    return object
  }

  async abortUpload(key: string, uploadId: string): Promise<void> {
    const upload = this.upload(key, uploadId)
    this.uploads.delete(uploadId)
    await Promise.all([...upload.parts.values()].map((part) => rm(part.file, { force: true })))
  }

  upload(key: string, uploadId: string): MultipartUpload {
    const upload = this.uploads.get(uploadId)
    if (upload?.key !== key) throw new S3Error(404, 'NoSuchUpload')
    return upload
  }

  async #store(chunks: AsyncIterable<Buffer>): Promise<{ path: string; bytes: number }> {
    const path = join(this.#directory, randomUUID())
    try {
      await pipeline(Readable.from(chunks, { objectMode: false }), createWriteStream(path))
    } catch (error) {
      await rm(path, { force: true })
      throw error
    }
    return { path, bytes: (await stat(path)).size }
  }

  /** Atomic, because nothing is awaited between the check and the change. */
  async #commit(object: StoredObject, condition: Condition): Promise<StoredObject> {
    try {
      this.#check(object.key, condition)
    } catch (error) {
      await rm(object.file)
      throw error
    }
    const replaced = this.#objects.get(object.key)
    this.#objects.set(object.key, object)
    if (replaced) await rm(replaced.file, { force: true })
    return object
  }

  #check(key: string, { ifNoneMatch, ifMatch }: Condition): void {
    const existing = this.#objects.get(key)
    if (ifNoneMatch === '*' && existing) throw new S3Error(412, 'PreconditionFailed')
    if (ifMatch !== undefined && ifMatch !== existing?.etag)
      throw existing ? new S3Error(412, 'PreconditionFailed') : new S3Error(404, 'NoSuchKey')
  }
}

/** A file's bytes from one open handle, even if the file is renamed or removed meanwhile. */
export async function* readFrom(file: string, start: number, end: number): AsyncGenerator<Buffer> {
  const handle = await open(file)
  try {
    if (end >= start) yield* handle.createReadStream({ start, end, autoClose: false }) as AsyncIterable<Buffer>
  } finally {
    await handle.close()
  }
}

async function* contentOf(parts: StoredPart[]): AsyncGenerator<Buffer> {
  for (const part of parts) yield* createReadStream(part.file) as AsyncIterable<Buffer>
}
