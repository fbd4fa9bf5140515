import { closeSync, fdatasync, fsyncSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'

const datasync = promisify(fdatasync)

/**
 * A file that others write, and that is flushed to disk outside the event loop. Those who ask while the disk is busy
 * share the next sync.
 */
export class SyncedFile {
  readonly #descriptor: number
  #running: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined
  #closed = false

  constructor(path: string) {
    // Windows syncs only what was opened for writing.
    this.#descriptor = openSync(path, 'r+')
    syncName(path)
  }

  /** Resolves once the disk has all that was written before the call. */
  sync(): Promise<void> {
    // A running sync may have missed what was written since it began.
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined
        return (this.#running = this.#closed ? Promise.resolve() : datasync(this.#descriptor))
      })
    return this.#next
  }

  /** Waits for the running sync, in the background. */
  close(): void {
    this.#closed = true
    void this.#running.catch(() => {}).then(() => closeSync(this.#descriptor))
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
