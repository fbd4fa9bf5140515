import { StemworkError } from '../core/engine/errors.js'

/** Folder for the files of one separation. */
export interface ResultsFolder {
  folder: FileSystemDirectoryHandle
  /** Removes these files if they exist. */
  remove(names: readonly string[]): Promise<void>
}

const parentName = 'stemwork'

/**
 * Creates a folder of the browser's private file system for one separation, and removes folders of closed pages. A lock
 * shows whether the page of a folder is open: the browser releases it however the page ends.
 *
 * @throws StemworkError `MISSING_DEPENDENCY` when the browser refuses the page its file system
 */
export async function createResultsFolder(): Promise<ResultsFolder> {
  const root = await navigator.storage.getDirectory().catch((cause: unknown) => {
    throw new StemworkError('MISSING_DEPENDENCY', noStorage, { cause })
  })
  const parent = await root.getDirectoryHandle(parentName, { create: true })
  const name = crypto.randomUUID()
  // Locked before it is created, so that no other page takes it for an old one.
  const release = await hold(lockOf(name))
  await removeOld(parent)
  const folder = await parent.getDirectoryHandle(name, { create: true })
  return {
    folder,
    async remove() {
      release()
      await parent.removeEntry(name, { recursive: true })
    },
  }
}

/** Whether it does, browsers tell only when asked: a private window looks like any other. */
const noStorage =
  'This browser stores no files for the page, as in a private window or where cookies are blocked. ' +
  'Open the page in an ordinary window, and allow cookies.'

const lockOf = (name: string) => `stemwork results ${name}`

async function hold(lock: string): Promise<() => void> {
  return await new Promise((resolve, reject) => {
    navigator.locks.request(lock, () => new Promise<void>((release) => resolve(release))).catch(reject)
  })
}

async function removeOld(parent: FileSystemDirectoryHandle): Promise<void> {
  const names: string[] = []
  for await (const name of parent.keys()) names.push(name)
  const { held = [] } = await navigator.locks.query()
  const locks = new Set(held.map((lock) => lock.name))
  for (const name of names) {
    // The browser may still be closing a file; the next separation tries again.
    if (!locks.has(lockOf(name))) await parent.removeEntry(name, { recursive: true }).catch(() => undefined)
  }
}
