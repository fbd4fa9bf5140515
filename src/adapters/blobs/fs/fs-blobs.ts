import { randomUUID } from 'node:crypto'
import type { Stats } from 'node:fs'
import { type FileHandle, link, open, rename, rm, stat, unlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { StemworkError } from '../../../core/engine/errors.js'
import { checkBlobKey, checkBlobPrefix } from '../../../core/engine/job/blob-keys.js'
import type { BlobStat, BlobStore } from '../../../core/engine/ports/blob-store.js'
import { blobChunks } from '../shared/blob-chunks.js'
import { abortable } from '../shared/abortable-source.js'
import { FileBody } from './file-body.js'
import {
  isTemporary,
  makeFolder,
  removeEmptyFolders,
  removeEmptyTree,
  syncFolder,
  temporaryName,
  walk,
} from './folders.js'
import { codeOf, isAbsent, storageError } from './storage-error.js'
import { encodeTrailer, readTrailer } from './trailer.js'

export interface FsBlobsOptions {
  /** Folder for the blobs; made if missing. It belongs to the store: keep nothing else in it. */
  directory: string
  /** Epoch milliseconds, for the age of temporary files. Default: `Date.now`. */
  clock?: () => number
}

/**
 * Files in a folder, one for each blob, at the path that its key names. A put writes a temporary file beside it, syncs it to the
 * disk and renames it, so a crash at any time leaves the previous state and at most a temporary file for `cleanUp`.
 *
 * Several processes may share the folder if its file system keeps POSIX promises (local disks do, most network ones too); the
 * file system must know hard links for `ifAbsent`, and upper from lower case if keys differ in nothing else.
 *
 * @example
 * const blobs = fsBlobs({ directory: 'data/blobs' })
 */
export function fsBlobs({ directory, clock = Date.now }: FsBlobsOptions): BlobStore {
  const root = resolve(directory)
  /** Temporary files that puts of this process are writing. */
  const writing = new Set<string>()

  return {
    traits: { scope: 'shared' },

    async put(key, source, { contentType = 'application/octet-stream', ifAbsent = false, signal } = {}) {
      const path = pathOf(key)
      const etag = randomUUID()
      const trailer = encodeTrailer({ contentType, etag })
      signal?.throwIfAborted()
      if (ifAbsent && (await statOf(key))) throw alreadyExists(key)
      const { file, temporary } = await openTemporary(dirname(path))
      writing.add(temporary)
      try {
        let bytes = 0
        let modifiedAt: number
        try {
          for await (const chunk of abortable(blobChunks(source), signal)) {
            await append(file, chunk)
            bytes += chunk.byteLength
          }
          await append(file, trailer)
          modifiedAt = await sync(file)
        } finally {
          await file.close()
        }
        signal?.throwIfAborted()
        await publish(temporary, path, key, ifAbsent)
        return { key, bytes, contentType, etag, modifiedAt }
      } catch (error) {
        await rm(temporary, { force: true }).catch(() => {})
        await removeEmptyFolders(dirname(path), root)
        throw error
      } finally {
        writing.delete(temporary)
      }
    },

    async get(key, { range, signal } = {}) {
      signal?.throwIfAborted()
      const file = await openBlob(pathOf(key))
      if (!file) return undefined
      try {
        const found = await describe(file, key)
        if (!found) throw damaged(key)
        const lastByte = found.bytes - 1
        return {
          stat: found,
          body: new FileBody(
            file,
            range ? { start: range.start, end: Math.min(range.end, lastByte) } : { start: 0, end: lastByte },
            signal,
          ),
        }
      } catch (error) {
        await file.close()
        throw error
      }
    },

    async stat(key) {
      const found = await statOf(key)
      if (found === 'damaged') throw damaged(key)
      return found
    },

    async delete(key) {
      const path = pathOf(key)
      try {
        await unlink(path)
        await syncFolder(dirname(path))
      } catch (error) {
        if (isAbsent(error) || (await isFolder(path))) return
        throw storageError('delete a blob', error)
      }
      await removeEmptyFolders(dirname(path), root)
    },

    async deletePrefix(prefix) {
      const folder = folderOf(prefix)
      let removed = 0
      for await (const { path, name } of walk(folder, prefix)) {
        try {
          await unlink(path)
          if (!isTemporary(name)) removed++
        } catch (error) {
          if (!isAbsent(error)) throw storageError('delete blobs', error)
        }
      }
      await removeEmptyTree(folder)
      await removeEmptyFolders(dirname(folder), root)
      return removed
    },

    async *list(prefix) {
      for await (const { key, name } of walk(folderOf(prefix), prefix)) {
        const found = isTemporary(name) ? undefined : await statOf(key)
        // One damaged or foreign file must not keep the sweep from all others.
        if (found && found !== 'damaged') yield found
      }
    },

    async cleanUp(olderThanMs) {
      const before = clock() - olderThanMs
      let removed = 0
      for await (const { path, name } of walk(root, '')) {
        if (!isTemporary(name) || writing.has(path)) continue
        try {
          if (modifiedAtOf(await stat(path)) > before) continue
          await unlink(path)
          removed++
        } catch (error) {
          if (!isAbsent(error)) throw storageError('clean up', error)
        }
        await removeEmptyFolders(dirname(path), root)
      }
      return removed
    },
  }

  /** The only two places where a path is made from a key, and only from a checked one. */
  function pathOf(key: string): string {
    return join(root, checkBlobKey(key))
  }

  function folderOf(prefix: string): string {
    return join(root, checkBlobPrefix(prefix))
  }

  async function statOf(key: string): Promise<BlobStat | 'damaged' | undefined> {
    const file = await openBlob(pathOf(key))
    if (!file) return undefined
    try {
      return (await describe(file, key)) ?? 'damaged'
    } finally {
      await file.close()
    }
  }

  async function openTemporary(folder: string): Promise<{ file: FileHandle; temporary: string }> {
    const temporary = join(folder, temporaryName())
    for (let attempt = 1; ; attempt++) {
      try {
        await makeFolder(folder)
        return { file: await open(temporary, 'wx', 0o600), temporary }
      } catch (error) {
        // A delete next door may remove the folder, empty as it still is, just after it was made.
        if (!isAbsent(error) || attempt === 10) throw storageError('begin a blob', error)
      }
    }
  }
}

async function append(file: FileHandle, chunk: Uint8Array): Promise<void> {
  try {
    for (let written = 0; written < chunk.byteLength;) {
      written += (await file.write(chunk, written, chunk.byteLength - written)).bytesWritten
    }
  } catch (error) {
    throw storageError('write a blob', error)
  }
}

/** Makes the bytes durable. Returns when the file was last modified. */
async function sync(file: FileHandle): Promise<number> {
  try {
    await file.sync()
    return modifiedAtOf(await file.stat())
  } catch (error) {
    throw storageError('write a blob', error)
  }
}

/** The one step in which the blob appears. */
async function publish(temporary: string, path: string, key: string, ifAbsent: boolean): Promise<void> {
  try {
    if (ifAbsent) {
      // A link fails where the name is taken, a rename would replace: of two writers only one can win.
      await link(temporary, path)
      await unlink(temporary)
    } else {
      await rename(temporary, path)
    }
    await syncFolder(dirname(path))
  } catch (error) {
    if (ifAbsent && codeOf(error) === 'EEXIST') throw alreadyExists(key)
    if (isAbsent(error)) {
      throw new StemworkError(
        'STORE_UNAVAILABLE',
        `The folder of ${key} was deleted while it was written. Write it again.`,
        {
          retryable: true,
          cause: error,
        },
      )
    }
    throw storageError('publish a blob', error)
  }
}

async function openBlob(path: string): Promise<FileHandle | undefined> {
  try {
    const file = await open(path, 'r')
    if ((await file.stat()).isFile()) return file
    await file.close()
    return undefined
  } catch (error) {
    if (isAbsent(error) || codeOf(error) === 'EISDIR') return undefined
    throw storageError('open a blob', error)
  }
}

async function describe(file: FileHandle, key: string): Promise<BlobStat | undefined> {
  try {
    const stats = await file.stat()
    const trailer = await readTrailer(file, stats.size)
    return trailer && { key, ...trailer, modifiedAt: modifiedAtOf(stats) }
  } catch (error) {
    throw storageError('read a blob', error)
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
}

function modifiedAtOf(stats: Stats): number {
  return Math.floor(stats.mtimeMs)
}

function alreadyExists(key: string): StemworkError {
  return new StemworkError('ALREADY_EXISTS', `There is a blob with the key ${key} already; it was left untouched.`)
}

function damaged(key: string): StemworkError {
  return new StemworkError(
    'STORE_UNAVAILABLE',
    `The file of ${key} does not end as the store wrote it: it was changed or damaged from outside. Delete it, and run its job again.`,
  )
}
