import type { Stats } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { codeOf, type StemworkError, storeUnavailable } from '../../../core/engine/errors.js'
import { checkBlobKey, checkBlobPrefix } from '../../../core/engine/job/blob-keys.js'
import type { BlobStat } from '../../../core/engine/ports/blob-store.js'
import { modifiedAtOf } from './durable-file.js'
import { isAbsent, storageError } from './storage-error.js'
import { readTrailer } from './trailer.js'

type OpenFile = { file: FileHandle; stats: Stats }
type OpenBlob = { file: FileHandle; blob: BlobStat }

/** The folder of the blobs: paths of its files, and what their trailers say. */
export class BlobFolder {
  readonly root: string
  readonly #known = new KnownFiles()

  constructor(directory: string) {
    this.root = resolve(directory)
  }

  /** Only this method and `folderOf` make paths, and only from checked keys. */
  pathOf(key: string): string {
    return join(this.root, checkBlobKey(key))
  }

  folderOf(prefix: string): string {
    return join(this.root, checkBlobPrefix(prefix))
  }

  /** Caches the facts of a written file, because most files are looked at soon after. Returns a copy of them. */
  keep(path: string, stats: Stats, facts: Omit<BlobStat, 'modifiedAt'>): BlobStat {
    const blob = { ...facts, modifiedAt: modifiedAtOf(stats) }
    this.#known.keep(path, stats, blob)
    return { ...blob }
  }

  /** @throws StemworkError `STORE_UNAVAILABLE` for a file that the store did not write. */
  async stat(key: string): Promise<BlobStat | undefined> {
    const found = await this.look(key)
    if (found === 'damaged') throw damaged(key)
    return found
  }

  async look(key: string): Promise<BlobStat | 'damaged' | undefined> {
    const path = this.pathOf(key)
    const found = await lookUp(path)
    const blob = found && this.#known.find(path, found)
    if (!found || blob) return blob
    const opened = await openFile(path)
    if (!opened) return undefined
    try {
      return (await this.#describe(path, opened, key)) ?? 'damaged'
    } finally {
      await opened.file.close()
    }
  }

  /**
   * Opens the file of a blob; the caller closes it.
   *
   * @param meanwhile called with the cached blob, before the file is looked at again
   * @throws as `stat`
   */
  async open(key: string, meanwhile: (expected: OpenBlob) => void): Promise<OpenBlob | undefined> {
    const path = this.pathOf(key)
    const expected = this.#known.last(path)
    const opened = await openFile(path, (file) => expected && meanwhile({ file, blob: expected }))
    if (!opened) return undefined
    const { file, stats } = opened
    try {
      const blob = this.#known.find(path, stats) ?? (await this.#describe(path, opened, key))
      if (!blob) throw damaged(key)
      return { file, blob }
    } catch (error) {
      await file.close()
      throw error
    }
  }

  async #describe(path: string, { file, stats }: OpenFile, key: string): Promise<BlobStat | undefined> {
    const trailer = await readTrailer(file, stats.size).catch((error: unknown) => {
      throw storageError('read a blob', error)
    })
    return trailer && this.keep(path, stats, { key, ...trailer })
  }
}

async function lookUp(path: string): Promise<Stats | undefined> {
  try {
    const found = await stat(path)
    return found.isFile() ? found : undefined
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw storageError('look up a blob', error)
  }
}

async function openFile(path: string, meanwhile?: (file: FileHandle) => void): Promise<OpenFile | undefined> {
  try {
    const file = await open(path, 'r')
    const looking = file.stat()
    meanwhile?.(file)
    const stats = await looking.catch(async (error: unknown) => {
      await file.close()
      throw error
    })
    if (stats.isFile()) return { file, stats }
    await file.close()
    return undefined
  } catch (error) {
    if (isAbsent(error) || codeOf(error) === 'EISDIR') return undefined
    throw storageError('open a blob', error)
  }
}

function damaged(key: string): StemworkError {
  return storeUnavailable(
    `The file of ${key} does not end as the store wrote it: it was changed or damaged since. Delete it and run its ` +
      'job again.',
  )
}

type Identity = Pick<Stats, 'ino' | 'size' | 'mtimeMs'>

const maxFiles = 10_000

/**
 * Caches the trailers of files by path. The store never changes a file but replaces it, so a cached file needs one
 * system call instead of four, which matters for counting all files of an application.
 */
export class KnownFiles {
  readonly #files = new Map<string, { identity: Identity; blob: BlobStat }>()

  keep(path: string, { ino, size, mtimeMs }: Identity, blob: BlobStat): void {
    this.#files.delete(path)
    for (const oldest of this.#files.keys()) {
      if (this.#files.size < maxFiles) break
      this.#files.delete(oldest)
    }
    this.#files.set(path, { identity: { ino, size, mtimeMs }, blob })
  }

  /** The blob as last seen. */
  last(path: string): BlobStat | undefined {
    return this.#files.get(path)?.blob
  }

  find(path: string, { ino, size, mtimeMs }: Identity): BlobStat | undefined {
    const known = this.#files.get(path)
    if (!known) return undefined
    const { identity, blob } = known
    const isSame = identity.ino === ino && identity.size === size && identity.mtimeMs === mtimeMs
    return isSame ? { ...blob } : undefined
  }
}
