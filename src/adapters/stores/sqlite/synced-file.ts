import { closeSync, fdatasync, fsyncSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'

const datasync = promisify(fdatasync)

/**
 * A file that others write, and that is flushed to disk outside the event loop. Calls while the disk is busy share the
 * next sync.
 *
 * @param store stores in another way what was written. Called after a failed sync: the system may have dropped it and
 * would not report that again.
 */
export function syncedFile(path: string, store: () => void) {
  // Windows syncs only files that were opened for writing.
  const descriptor = openSync(path, 'r+')
  syncName(path)
  let running: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined
  let isClosed = false
  let mayLack = false
  const flush = async () => {
    if (isClosed) return
    if (mayLack) store()
    mayLack = true
    await datasync(descriptor)
    mayLack = false
  }
  return {
    /** Resolves once everything written before the call is on the disk. */
    sync(): Promise<void> {
      // A running sync may have missed writes since it began.
      next ??= running
        .catch(() => {})
        .then(() => {
          next = undefined
          return (running = flush())
        })
      return next
    },

    /** Waits for the running sync, in the background. */
    close(): void {
      isClosed = true
      void running.catch(() => {}).then(() => closeSync(descriptor))
    },
  }
}

/** Flushes the file's name to disk. */
function syncName(path: string): void {
  // Windows opens no folders, and its file systems journal their names.
  if (process.platform === 'win32') return
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
