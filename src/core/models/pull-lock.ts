import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const pollMs = 200

/** Held until it is closed, or until its process ends, however it ends. */
export interface FileLock {
  close(): void
}

/**
 * Runs `work` exclusively: other processes, and other calls in this process, wait while one runs for the same file.
 *
 * @throws the signal's reason if it is aborted while waiting
 */
export async function withPullLock<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  let lock: FileLock | undefined
  while (!(lock = await takeLock(path))) await wait(pollMs, undefined, { signal })
  try {
    return await work()
  } finally {
    lock.close()
  }
}

/**
 * Takes the operating system's lock on an empty SQLite file, which is made with its folder.
 *
 * @returns `undefined` while another process, or another call in this one, holds it
 */
export async function takeLock(path: string): Promise<FileLock | undefined> {
  await mkdir(dirname(path), { recursive: true })
  // Native code, loaded only when needed.
  const { default: Database } = await import('libsql')
  const lock = new Database(path, { timeout: 0 })
  try {
    lock.exec('BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    if (error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY') return undefined
    throw error
  }
}
