import { constants } from 'node:fs'
import { copyFile, open, rm, stat } from 'node:fs/promises'
import { isAbsent } from './storage-error.js'
import { readTrailer } from './trailer.js'

/**
 * Copies a blob's file inside the kernel, and cuts the trailer off the copy. Returns the size; `undefined` if there is no such
 * file; `'damaged'` if it has no trailer.
 */
export async function copyBlob(
  source: string,
  path: string,
  signal: AbortSignal | undefined,
): Promise<number | 'damaged' | undefined> {
  try {
    await copyFile(source, path, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
  } catch (error) {
    // Deleted meanwhile; else the folder of `path` is missing.
    if (isAbsent(error) && !(await isFile(source))) return undefined
    throw error
  }
  let isComplete = false
  try {
    signal?.throwIfAborted()
    const file = await open(path, 'r+')
    try {
      // Of the copy, because the blob may have been replaced since.
      const { size } = await file.stat()
      const trailer = await readTrailer(file, size)
      if (!trailer) return 'damaged'
      await file.truncate(trailer.bytes)
      isComplete = true
      return trailer.bytes
    } finally {
      await file.close()
    }
  } finally {
    if (!isComplete) await rm(path, { force: true })
  }
}

function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  )
}
