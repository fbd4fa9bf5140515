import type { Stats } from 'node:fs'
import { link, open, rm, stat } from 'node:fs/promises'
import type { DiskTurn } from './disk-turns.js'
import { append, sync } from './durable-file.js'
import { codeOf } from './storage-error.js'

/** Another disk, or a file system without hard links or with a limit on them. */
const cannotLink = ['EXDEV', 'EPERM', 'EACCES', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']

/** Gives a file a second name. Returns false if it cannot have one there and must be copied. */
export async function linkFile(path: string, second: string, change: DiskTurn): Promise<boolean> {
  try {
    await change(() => link(path, second))
    return true
  } catch (error) {
    if (cannotLink.includes(codeOf(error))) return false
    throw error
  }
}

/**
 * Writes the trailer after the file's bytes, makes both durable and publishes the file.
 *
 * @param published where `publish` puts the file. If that fails, it is not there, and the file is as it was under its
 * other names.
 * @returns the bytes before the trailer, and what is known of the published file
 */
export async function publishWithTrailer(
  path: string,
  trailer: Buffer,
  published: string,
  { change, publish }: { change: DiskTurn; publish: () => Promise<void> },
): Promise<{ bytes: number; stats: Stats }> {
  const file = await open(path, 'r+')
  try {
    const { size, ino } = await file.stat()
    try {
      // As for files that the store writes itself: for the owner only.
      await file.chmod(0o600)
      await append(file, trailer, change, size)
      await sync(file, change)
      await publish()
      return { bytes: size, stats: await file.stat() }
    } catch (error) {
      // Published, but perhaps not durably.
      const found = await stat(published).catch(() => undefined)
      if (found?.ino === ino) await rm(published, { force: true })
      await file.truncate(size)
      throw error
    }
  } finally {
    await file.close()
  }
}
