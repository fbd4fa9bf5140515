import { requireOption } from '../../../core/engine/errors.js'
import { stat, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { BlobStore } from '../../../core/engine/ports/blob-store.js'
import { BlobFolder } from './blob-folder.js'
import { blobWrites } from './blob-writes.js'
import { changesOf, readsOf } from './disk-turns.js'
import { modifiedAtOf } from './durable-file.js'
import { fileBody, readChunk } from './file-body.js'
import { isTemporary, removeEmptyFolders, removeEmptyTree, syncFolder, walk } from './folders.js'
import { isAbsent, storageError } from './storage-error.js'

/** Reads up to this size begin before the file has been looked at: on a busy event loop, each call takes a pass. */
const mostAhead = 64 * 1024

export interface FsBlobsOptions {
  /** Folder for the blobs; made if missing. It belongs to the store: keep nothing else in it. */
  directory: string
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
export function fsBlobs(options: FsBlobsOptions): BlobStore {
  const { directory } = options ?? {}
  const isGiven = typeof directory === 'string' && directory !== ''
  requireOption(isGiven, options, "fsBlobs({ directory: 'data/blobs' })", 'the path of a folder for the files')
  const folder = new BlobFolder(directory)
  const writing = new Set<string>()
  return {
    traits: { scope: 'shared' },
    ...blobWrites(folder, writing),
    ...blobReads(folder),
    ...blobRemovals(folder, writing),
  }
}

function blobReads(folder: BlobFolder): Pick<BlobStore, 'get' | 'localFile' | 'stat' | 'list'> {
  return {
    async get(key, { range, signal, app, reuseMemory } = {}) {
      signal?.throwIfAborted()
      const turn = readsOf(key, app)
      const { start, end } = range ?? { start: 0, end: Infinity }
      let ahead: { etag: string; first: Promise<Uint8Array> } | undefined
      const opened = await folder.open(key, ({ file, blob: { bytes, etag } }) => {
        const length = Math.min(end + 1, bytes) - start
        if (length <= 0 || length > mostAhead) return
        ahead = { etag, first: readChunk(file, Buffer.allocUnsafe(length), { position: start, length, turn }) }
        ahead.first.catch(() => {})
      })
      if (!opened) return undefined
      const { file, blob } = opened
      const first = ahead?.etag === blob.etag ? ahead.first : undefined
      const bytes = { start, end: Math.min(end, blob.bytes - 1) }
      return { stat: blob, body: fileBody(file, bytes, { turn, signal, reuseMemory, first }) }
    },

    async localFile(key) {
      const found = await folder.stat(key)
      return found && { path: folder.pathOf(key), bytes: found.bytes }
    },

    stat: (key) => folder.stat(key),

    async *list(prefix) {
      for await (const { key, name } of walk(folder.folderOf(prefix), prefix)) {
        const found = isTemporary(name) ? undefined : await folder.look(key)
        // One damaged or foreign file must not keep the sweep from all others.
        if (found && found !== 'damaged') yield found
      }
    },
  }
}

function blobRemovals(
  folder: BlobFolder,
  writing: ReadonlySet<string>,
): Pick<BlobStore, 'delete' | 'deletePrefix' | 'cleanUp'> {
  const { root } = folder
  return {
    async delete(key, { app } = {}) {
      const path = folder.pathOf(key)
      const change = changesOf(key, app)
      try {
        await change(() => unlink(path))
        await syncFolder(dirname(path), change)
      } catch (error) {
        if (isAbsent(error) || (await isFolder(path))) return
        throw storageError('delete a blob', error)
      }
      await removeEmptyFolders(dirname(path), root, change)
    },

    async deletePrefix(prefix, { app } = {}) {
      const removedFolder = folder.folderOf(prefix)
      const change = changesOf(prefix, app)
      let removed = 0
      for await (const { path, name } of walk(removedFolder, prefix)) {
        try {
          await change(() => unlink(path))
          if (!isTemporary(name)) removed++
        } catch (error) {
          if (!isAbsent(error)) throw storageError('delete blobs', error)
        }
      }
      await removeEmptyTree(removedFolder, change)
      await removeEmptyFolders(dirname(removedFolder), root, change)
      return removed
    },

    async cleanUp(before) {
      let removed = 0
      for await (const { path, key, name } of walk(root, '')) {
        if (!isTemporary(name) || writing.has(path)) continue
        const change = changesOf(key)
        try {
          if (modifiedAtOf(await stat(path)) > before) continue
          await change(() => unlink(path))
          removed++
        } catch (error) {
          if (!isAbsent(error)) throw storageError('clean up', error)
        }
        await removeEmptyFolders(dirname(path), root, change)
      }
      return removed
    },
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
}
