import type { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { DataStore, Upload } from '@tus/server'
import { z } from 'zod'
import { StemworkError, storeUnavailable } from '../../core/engine/errors.js'
import { keepLatest } from '../keep-latest.js'
import { uploadKey } from '../../core/engine/job/blob-keys.js'
import type { BlobStore } from '../../core/engine/ports/blob-store.js'
import { conflict, notFound, Problem } from '../routing/problem.js'
import type { StorageUse } from '../routing/storage-use.js'
import { isUsed } from './upload-refusal.js'

/**
 * Size of a piece, which bounds what a crash of the service loses; a broken connection loses nothing that was received.
 * S3 requires 5 MiB or more.
 */
export const partBytes = 8 * 1024 ** 2
const offsetDigits = 16

/**
 * Offsets of the latest uploads of which this process stored pieces. Listing the pieces takes longer with each, so a
 * file in pieces of one byte would become ever slower.
 */
const offsets = new Map<string, number>()
const mostOffsets = 1000
/** Files being joined, by key. A client whose connection ended meanwhile asks again: it must not begin another copy. */
const joins = new Map<string, Promise<void>>()

const factsSchema = z.object({ size: z.number().int().nonnegative(), createdAt: z.string() })
const idForm = /^[0-9a-f-]{36}$/

export interface UploadPartsOptions {
  blobs: BlobStore
  storage: StorageUse
  /** The application that owns the uploads; those of others are not found. */
  app: string
  /** How long an upload may take, from its beginning. */
  lifetimeMs: number
}

/**
 * Uploads of an application that arrive in pieces, over any blob store: each piece is a blob named after its offset,
 * and the last one joins them into a file. Pieces that remain are swept like unused uploads.
 */
export class UploadParts extends DataStore {
  override extensions = ['creation', 'creation-with-upload', 'termination', 'expiration']
  readonly #options: UploadPartsOptions

  constructor(options: UploadPartsOptions) {
    super()
    this.#options = options
  }

  override getExpiration(): number {
    return this.#options.lifetimeMs
  }

  override async create(upload: Upload): Promise<Upload> {
    const createdAt = (upload.creation_date ??= new Date().toISOString())
    await this.#options.blobs.put(this.#factsKey(upload.id), JSON.stringify({ size: upload.size ?? 0, createdAt }))
    return upload
  }

  /** Returns the upload with its offset. @throws Problem `NOT_FOUND`, or `GONE` once the file was used and removed */
  override async getUpload(id: string): Promise<Upload> {
    const facts = idForm.test(id) ? await this.#options.blobs.get(this.#factsKey(id)) : undefined
    if (!facts) throw noSuchUpload()
    const { size, createdAt } = factsSchema.parse(await json(facts.body))
    const upload = (offset: number) => new Upload({ id, size, offset, creation_date: createdAt })
    const key = uploadKey(this.#options.app, id)
    if (await isUsed(this.#options.blobs, key)) {
      if (!(await this.#options.blobs.stat(key))) throw uploadOver()
      return upload(size)
    }
    const bytes = (await this.#knownOffset(id)) ?? (await this.#parts(id)).bytes
    // A crash may have happened between the last piece and the file.
    if (bytes === size && size > 0) await this.complete(id, size)
    return upload(bytes)
  }

  /** Stores all received bytes, even if the connection breaks. @returns the offset after them */
  override async write(stream: Readable, id: string, offset: number): Promise<number> {
    const slot = await this.#options.storage.begin(this.#options.app, uploadKey(this.#options.app, id), 0)
    let at = offset
    try {
      const source = stream[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
      const rest: { chunk: Uint8Array | undefined } = { chunk: undefined }
      for (;;) {
        rest.chunk ??= await next(source)
        if (!rest.chunk) return at
        const part = pieceOf(source, rest, (bytes) => slot.received(bytes))
        const { bytes } = await this.#options.blobs.put(this.#partKey(id, at), part, { ifAbsent: true })
        at += bytes
        keepLatest(offsets, id, at, mostOffsets)
      }
    } catch (error) {
      // Another process has stored this piece: the client asks for the offset and continues from there.
      if (StemworkError.is(error) && error.code === 'ALREADY_EXISTS') throw otherOffset()
      throw error
    } finally {
      slot.end(at > offset)
    }
  }

  /** Joins the pieces into the file, unless that was done. @throws Problem `GONE` once the first pieces were swept */
  async complete(id: string, size: number): Promise<void> {
    const key = uploadKey(this.#options.app, id)
    const joining = joins.get(key) ?? this.#join(id, key, size).finally(() => joins.delete(key))
    joins.set(key, joining)
    await joining
  }

  async #join(id: string, key: string, size: number): Promise<void> {
    const { parts, bytes } = await this.#parts(id)
    // A long request may bring the last bytes after the upload has expired: they would look like the whole file.
    if (bytes !== size && !(await isUsed(this.#options.blobs, key))) throw uploadOver()
    try {
      await this.#options.blobs.put(key, this.#joined(parts), {
        ifAbsent: true,
        contentType: 'application/octet-stream',
      })
    } catch (error) {
      if (!StemworkError.is(error) || error.code !== 'ALREADY_EXISTS') throw error
    }
    await this.#options.blobs.deletePrefix(this.#partsPrefix(id))
  }

  override async remove(id: string): Promise<void> {
    await this.getUpload(id)
    await this.#options.blobs.deletePrefix(this.#partsPrefix(id))
    await this.#options.blobs.delete(this.#factsKey(id))
  }

  async #knownOffset(id: string): Promise<number | undefined> {
    const offset = offsets.get(id)
    // Another process may have stored more.
    return offset === undefined || (await this.#options.blobs.stat(this.#partKey(id, offset))) ? undefined : offset
  }

  /** The pieces in their order, each beginning where the one before it ends. */
  async #parts(id: string): Promise<{ parts: string[]; bytes: number }> {
    const parts: string[] = []
    let bytes = 0
    for await (const entry of this.#options.blobs.list(this.#partsPrefix(id))) {
      if (entry.key !== this.#partKey(id, bytes)) break
      parts.push(entry.key)
      bytes += entry.bytes
    }
    return { parts, bytes }
  }

  async *#joined(parts: readonly string[]): AsyncGenerator<Uint8Array, void, undefined> {
    for (const key of parts) {
      const part = await this.#options.blobs.get(key, { reuseMemory: true })
      if (!part) throw storeUnavailable('A part of an upload is missing.', { retryable: true })
      yield* part.body
    }
  }

  #factsKey(id: string): string {
    return `${uploadKey(this.#options.app, id)}.resumable`
  }

  #partsPrefix(id: string): string {
    return `${uploadKey(this.#options.app, id)}.parts/`
  }

  #partKey(id: string, offset: number): string {
    return this.#partsPrefix(id) + String(offset).padStart(offsetDigits, '0')
  }
}

export function noSuchUpload(): Problem {
  return notFound('There is no such upload, or it has expired. Start a new one.')
}

export function uploadOver(): Problem {
  return new Problem('GONE', 'This upload has expired, or its file was used and removed. Start a new one.')
}

export function otherOffset(): Problem {
  return conflict('The offset does not match the stored one. Ask for it with HEAD.')
}

/** Yields the next bytes of the source, at most `partBytes`. The rest of the last chunk stays in `rest`. */
async function* pieceOf(
  source: AsyncIterator<Uint8Array>,
  rest: { chunk: Uint8Array | undefined },
  onBytes: (bytes: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  let left = partBytes
  while (left > 0) {
    const chunk = rest.chunk ?? (await next(source))
    rest.chunk = undefined
    if (!chunk) return
    const bytes = Math.min(left, chunk.byteLength)
    if (bytes < chunk.byteLength) rest.chunk = chunk.subarray(bytes)
    onBytes(bytes)
    left -= bytes
    yield chunk.subarray(0, bytes)
  }
}

async function next(source: AsyncIterator<Uint8Array>): Promise<Uint8Array | undefined> {
  const { done, value } = await source.next()
  return done ? undefined : value
}
