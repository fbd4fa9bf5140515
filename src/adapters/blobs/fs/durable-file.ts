import type { Stats } from 'node:fs'
import { type FileHandle, link, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf } from '../../../core/engine/errors.js'
import { alreadyExists, folderDeleted } from '../shared/write-refusals.js'
import type { DiskTurn } from './disk-turns.js'
import { syncFolder } from './folders.js'
import { isAbsent, storageError } from './storage-error.js'

export async function append(file: FileHandle, chunk: Uint8Array, change: DiskTurn, position?: number): Promise<void> {
  try {
    for (let written = 0; written < chunk.byteLength;) {
      const at = position === undefined ? null : position + written
      const { bytesWritten } = await change(() => file.write(chunk, written, chunk.byteLength - written, at))
      written += bytesWritten
    }
  } catch (error) {
    throw storageError('write a blob', error)
  }
}

/** Makes the bytes durable. */
export async function sync(file: FileHandle, change: DiskTurn): Promise<void> {
  try {
    await change(() => file.sync())
  } catch (error) {
    throw storageError('write a blob', error)
  }
}

/** Makes the blob appear, in one step. */
export async function publish(
  temporary: string,
  path: string,
  { key, ifAbsent, change }: { key: string; ifAbsent: boolean; change: DiskTurn },
): Promise<void> {
  try {
    if (ifAbsent) {
      // Unlike a rename, a link fails if the name is taken: of two writers only one can win.
      const linked = change(() => link(temporary, path))
      const unlinked = linked.then(() => change(() => unlink(temporary)))
      await Promise.all([syncFolder(dirname(path), change, linked), unlinked])
    } else {
      await syncFolder(
        dirname(path),
        change,
        change(() => rename(temporary, path)),
      )
    }
  } catch (error) {
    if (ifAbsent && codeOf(error) === 'EEXIST') throw alreadyExists(key)
    if (isAbsent(error)) throw folderDeleted(key, error)
    throw storageError('publish a blob', error)
  }
}

export function modifiedAtOf(stats: Stats): number {
  return Math.floor(stats.mtimeMs)
}
