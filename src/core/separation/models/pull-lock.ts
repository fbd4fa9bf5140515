import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const pollMs = 200

/**
 * Runs `work` exclusively: other processes, and other calls in this process, wait while one runs for the same file. It uses the
 * operating system's lock on an empty SQLite file, so the lock is released when its process ends, however it ends.
 *
 * @throws the signal's reason if it is aborted while waiting
 */
export async function withPullLock<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  await mkdir(dirname(path), { recursive: true })
  // Native code, loaded only when needed.
  const { default: Database } = await import('libsql')
  const lock = new Database(path, { timeout: 0 })
  try {
    while (!isTaken(lock)) await wait(pollMs, undefined, { signal })
    return await work()
  } finally {
    lock.close()
  }
}

function isTaken(lock: { exec(sql: string): unknown }): boolean {
  try {
    lock.exec('BEGIN EXCLUSIVE')
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY') return false
    throw error
  }
}
