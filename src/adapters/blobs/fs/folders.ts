import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf } from '../../../core/engine/errors.js'
import type { DiskTurn } from './disk-turns.js'
import { isAbsent, storageError } from './storage-error.js'

/** Begins the names of temporary files; no key can contain it. */
const temporaryMark = '~'

export function temporaryName(): string {
  return `${temporaryMark}${randomUUID()}`
}

export function isTemporary(name: string): boolean {
  return name.startsWith(temporaryMark)
}

/** Makes the folder and its parents, for their owner alone; each new folder survives a power cut. */
export async function makeFolder(folder: string, change: DiskTurn): Promise<void> {
  const first = await change(() => mkdir(folder, { recursive: true, mode: 0o700 }))
  if (first === undefined) return
  for (let made = folder; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made), change)
}

/**
 * Makes the names in a folder durable.
 *
 * @param named the pending change of names. The folder is opened meanwhile: under load, each call waits in a queue.
 */
export async function syncFolder(folder: string, change: DiskTurn, named?: Promise<void>): Promise<void> {
  // Windows opens no folders, and its file systems journal their names.
  if (process.platform === 'win32') return await named
  // A folder that was removed again has nothing to make durable.
  const opening = open(folder, 'r').catch((error: unknown) => {
    if (!isAbsent(error)) throw error
  })
  const [opened, done] = await Promise.allSettled([opening, named])
  const handle = opened.status === 'fulfilled' ? opened.value : undefined
  try {
    if (done.status === 'rejected') throw done.reason
    if (opened.status === 'rejected') throw opened.reason
    if (handle) await change(() => handle.sync())
  } finally {
    // Nothing was written through the handle.
    void handle?.close().catch(() => {})
  }
}

/** Removes the folder and its parents, up to but not including `root`, as long as they are empty. */
export async function removeEmptyFolders(folder: string, root: string, change: DiskTurn): Promise<void> {
  for (let path = folder; path.startsWith(root) && path.length > root.length; path = dirname(path)) {
    try {
      await change(() => rmdir(path))
    } catch (error) {
      if (!isAbsent(error)) return
    }
  }
}

/** Removes every folder below and including `folder` that holds no file. */
export async function removeEmptyTree(folder: string, change: DiskTurn): Promise<void> {
  for (const entry of await entriesOf(folder))
    if (entry.isDirectory()) await removeEmptyTree(join(folder, entry.name), change)
  await change(() => rmdir(folder)).catch((error: unknown) => {
    if (!isAbsent(error) && !['ENOTEMPTY', 'EEXIST'].includes(codeOf(error)))
      throw storageError('remove a folder', error)
  })
}

export interface FoundFile {
  path: string
  /** The prefix and the path below the folder, joined by `/`. */
  key: string
  name: string
}

/** All files below a folder, in the order of their keys. */
export async function* walk(folder: string, prefix: string): AsyncGenerator<FoundFile, void, void> {
  const entries = (await entriesOf(folder)).map((entry) => ({
    entry,
    order: entry.isDirectory() ? `${entry.name}/` : entry.name,
  }))
  // Sorted as keys: `a-b` comes before `a/b`, although `a` comes before `a-b`.
  entries.sort((a, b) => (a.order < b.order ? -1 : 1))
  for (const { entry } of entries) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) yield* walk(path, `${prefix}${entry.name}/`)
    else if (entry.isFile()) yield { path, key: prefix + entry.name, name: entry.name }
  }
}

async function entriesOf(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true })
  } catch (error) {
    if (isAbsent(error)) return []
    throw storageError('list a folder', error)
  }
}
