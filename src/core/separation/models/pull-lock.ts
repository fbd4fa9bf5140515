import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const pollMs = 200

/**
 * Runs `work` while no other process, and no other call in this one, does so for the same file; the others wait. The lock is the
 * system's own on an empty SQLite file, so it ends with the process that holds it, however that ends.
 *
 * @throws the signal's reason when it fires while waiting
 */
export async function withPullLock<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  await mkdir(dirname(path), { recursive: true })
  // Native code: loaded only for this.
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
