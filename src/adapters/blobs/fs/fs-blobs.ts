import { randomUUID } from 'node:crypto'
import { createReadStream, type Stats } from 'node:fs'
import { type FileHandle, lstat, open, rm, stat, unlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { StemworkError } from '../../../core/engine/errors.js'
import { checkBlobKey, checkBlobPrefix } from '../../../core/engine/job/blob-keys.js'
import type { BlobSource, BlobStat, BlobStore, PutOptions } from '../../../core/engine/ports/blob-store.js'
import { blobChunks } from '../shared/blob-chunks.js'
import { abortable } from '../shared/abortable-source.js'
import { changeDisk } from './disk-changes.js'
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
import { alreadyExists, append, modifiedAtOf, publish, sync } from './durable-file.js'
import { KnownFiles } from './known-files.js'
import { linkFile, publishWithTrailer } from './moved-file.js'
import { codeOf, isAbsent, storageError } from './storage-error.js'
import { encodeTrailer, readTrailer } from './trailer.js'

export interface FsBlobsOptions {
  /** Folder for the blobs; made if missing. It belongs to the store: keep nothing else in it. */
  directory: string
  /** Epoch milliseconds, for the age of temporary files. Default: `Date.now`. */
  clock?: () => number
}

/**
 * Files in a folder, one per blob, at the path of its key. A put writes a temporary file next to it, syncs it to the
 * disk and renames it, so a crash at any time leaves the previous state and at most a temporary file for `cleanUp`.
 *
 * Several processes may share the folder if its file system keeps POSIX promises (local disks do, most network ones
 * too); the file system must support hard links for `ifAbsent`, and must be case-sensitive if keys differ only in case.
 *
 * @example
 * const blobs = fsBlobs({ directory: 'data/blobs' })
 */
export function fsBlobs({ directory, clock = Date.now }: FsBlobsOptions): BlobStore {
  const root = resolve(directory)
  /** Temporary files that puts of this process are writing. */
  const writing = new Set<string>()
  const known = new KnownFiles()

  return {
    traits: { scope: 'shared' },
    put,

    async putFile(key, source, options = {}) {
      const { contentType = 'application/octet-stream', signal } = options
      const path = pathOf(key)
      const etag = randomUUID()
      const trailer = encodeTrailer({ contentType, etag })
      signal?.throwIfAborted()
      const temporary = join(dirname(path), temporaryName())
      // Of a symbolic link, the link itself would be moved.
      const isFile = (await lstat(source)).isFile()
      if (!isFile || !(await inFolder(dirname(path), () => linkFile(source, temporary)))) {
        const copied = await put(key, createReadStream(source), options)
        await rm(source, { force: true })
        return copied
      }
      writing.add(temporary)
      try {
        const { bytes, modifiedAt } = await publishWithTrailer(temporary, trailer, path, async () => {
          signal?.throwIfAborted()
          await publish(temporary, path, key, false)
        })
        await rm(source, { force: true })
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
      const opened = await openBlob(pathOf(key))
      if (!opened) return undefined
      const { file } = opened
      try {
        const found = await describe(opened, key)
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

    async localFile(key) {
      const found = await statOf(key)
      if (found === 'damaged') throw damaged(key)
      return found && { path: pathOf(key), bytes: found.bytes }
    },

    async stat(key) {
      const found = await statOf(key)
      if (found === 'damaged') throw damaged(key)
      return found
    },

    async delete(key) {
      const path = pathOf(key)
      try {
        await changeDisk(() => unlink(path))
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
          await changeDisk(() => unlink(path))
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
          await changeDisk(() => unlink(path))
          removed++
        } catch (error) {
          if (!isAbsent(error)) throw storageError('clean up', error)
        }
        await removeEmptyFolders(dirname(path), root)
      }
      return removed
    },
  }

  async function put(
    key: string,
    source: BlobSource,
    { contentType = 'application/octet-stream', ifAbsent = false, signal }: PutOptions = {},
  ): Promise<BlobStat> {
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
  }

  /** The only two places where a path is made from a key, and only from a checked one. */
  function pathOf(key: string): string {
    return join(root, checkBlobKey(key))
  }

  function folderOf(prefix: string): string {
    return join(root, checkBlobPrefix(prefix))
  }

  async function statOf(key: string): Promise<BlobStat | 'damaged' | undefined> {
    const path = pathOf(key)
    const found = await lookUp(path)
    const blob = found && known.find(path, found)
    if (!found || blob) return blob
    const opened = await openBlob(path)
    if (!opened) return undefined
    try {
      const described = await describe(opened, key)
      if (described) known.keep(path, opened.stats, described)
      return described ?? 'damaged'
    } finally {
      await opened.file.close()
    }
  }

  async function openTemporary(folder: string): Promise<{ file: FileHandle; temporary: string }> {
    const temporary = join(folder, temporaryName())
    return { file: await inFolder(folder, () => changeDisk(() => open(temporary, 'wx', 0o600))), temporary }
  }

  async function inFolder<Result>(folder: string, begin: () => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      try {
        await makeFolder(folder)
        return await begin()
      } catch (error) {
        // A simultaneous delete may remove the new folder while it is still empty.
        if (!isAbsent(error) || attempt === 10) throw storageError('begin a blob', error)
      }
    }
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

interface OpenFile {
  file: FileHandle
  stats: Stats
}

async function openBlob(path: string): Promise<OpenFile | undefined> {
  try {
    const file = await open(path, 'r')
    const stats = await file.stat()
    if (stats.isFile()) return { file, stats }
    await file.close()
    return undefined
  } catch (error) {
    if (isAbsent(error) || codeOf(error) === 'EISDIR') return undefined
    throw storageError('open a blob', error)
  }
}

async function describe({ file, stats }: OpenFile, key: string): Promise<BlobStat | undefined> {
  try {
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

function damaged(key: string): StemworkError {
  return new StemworkError(
    'STORE_UNAVAILABLE',
    `The file of ${key} does not end as the store wrote it: it was changed or damaged since. Delete it and run its ` +
      'job again.',
  )
}
