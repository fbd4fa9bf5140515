import { randomUUID } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { requireOption, StemworkError, tooLarge } from '../errors.js'
import { localUploadKey } from '../job/blob-keys.js'
import type { BlobStore } from '../ports/blob-store.js'
import { putCopy } from '../ports/put-copy.js'

/** JSON has no symbols, so no data from a network can pass for a file that the host named. */
const brand = Symbol.for('stemwork.local-file')

/** A local file as an input; made only by `localFile`. */
export interface LocalFile {
  readonly [brand]: true
  readonly path: string
}

/**
 * Makes a local file an input of a job. Only the host's code can do so: no HTTP request can name a local file.
 *
 * @param path a path, or a `file:` URL
 * @example
 * const inputs = { inputUrl: localFile('song.mp3') }
 * await engine.submit({ app: 'me', workflow: 'service/stems-vocals-accompaniment', inputs })
 */
export function localFile(path: string | URL): LocalFile {
  const isGiven = path instanceof URL || typeof path === 'string'
  requireOption(isGiven, path, "localFile('song.mp3')", 'the path of a file')
  const isUrl = path instanceof URL || path.startsWith('file:')
  return { [brand]: true, path: isUrl ? fileURLToPath(path) : path }
}

export function isLocalFile(value: unknown): value is LocalFile {
  return typeof value === 'object' && value !== null && brand in value
}

/** The input's URL in the record: the file name without folders, at a host that cannot exist (RFC 2606). */
export function addressOf({ path }: LocalFile): string {
  return `https://local-file.invalid/${encodeURIComponent(Buffer.from(basename(path)).toString())}`
}

interface FileInput {
  app: string
  inputs?: Record<string, LocalFile>
  uploads?: Record<string, string>
}

/**
 * Copies local files into the blob store as uploads, then calls `create` with the submission. Removes the copies if no
 * job is created.
 *
 * @throws StemworkError `INVALID_PARAMS` for a file that cannot be read; `BAD_INPUT` with reason `too_large`. Errors of
 * `create`.
 */
export async function withLocalFiles<Input extends FileInput, Result extends { created: boolean }>(
  input: Input,
  blobs: BlobStore,
  maxBytes: number,
  create: (input: Input) => Promise<Result>,
): Promise<Result> {
  const files = Object.entries(input.inputs ?? {})
  if (files.length === 0) return create(input)
  const uploads: Record<string, string> = {}
  let isKept = false
  try {
    for (const [name, { path }] of files) {
      await requireFile(name, path, maxBytes)
      const key = localUploadKey(input.app, randomUUID())
      uploads[name] = key
      await putCopy(blobs, key, path, { ifAbsent: true, contentType: 'application/octet-stream' })
    }
    const result = await create({ ...input, uploads: { ...input.uploads, ...uploads } })
    isKept = result.created
    return result
  } finally {
    // Ignored, because a failure here would hide the outcome; the sweep removes unreferenced files.
    if (!isKept) await Promise.all(Object.values(uploads).map((key) => blobs.delete(key))).catch(() => {})
  }
}

async function requireFile(name: string, path: string, maxBytes: number): Promise<void> {
  let problem: string
  try {
    const found = await stat(path)
    if (found.isFile()) {
      if (found.size > maxBytes) throw tooLarge(maxBytes)
      return
    }
    problem = 'is not a file'
  } catch (error) {
    if (StemworkError.is(error)) throw error
    problem = `cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`
  }
  const message = `the local file ${basename(path)} ${problem}`
  throw new StemworkError('INVALID_PARAMS', `Invalid inputs.${name}: ${message}. Check its path.`, {
    details: { issues: [{ path: `inputs.${name}`, message }] },
  })
}
