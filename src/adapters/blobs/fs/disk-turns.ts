import { Shares } from '../../../core/engine/limits/shares.js'

/** Does one system call when its turn comes. One that waits for another turn would block both. */
export type DiskTurn = <Result>(call: () => Promise<Result>) => Promise<Result>

/** Read the same way as libuv does. */
const threads = Number(process.env['UV_THREADPOOL_SIZE']) || 4

/**
 * Writes, syncs, creations and removals get half of the process's file threads, reads a quarter. A busy disk may block
 * each of them for long; the others keep name look-ups and the job database going.
 */
const changes = new Shares({ total: Math.max(1, Math.floor(threads / 2)), reserve: 0 })
const reads = new Shares({ total: Math.max(1, Math.floor(threads / 4)), reserve: 0 })

/** Turns of the owner of a key, to change files: the application of an upload, or the job of any other file. */
export function changesOf(key: string): DiskTurn {
  return turnsOf(changes, key)
}

/** The same, to read their bytes. */
export function readsOf(key: string): DiskTurn {
  return turnsOf(reads, key)
}

function turnsOf(shares: Shares, key: string): DiskTurn {
  const owner = key.split('/', 2).join('/')
  return (call) => inTurn(shares, owner, call)
}

async function inTurn<Result>(shares: Shares, owner: string, call: () => Promise<Result>): Promise<Result> {
  const share = await shares.take(owner)
  try {
    return await call()
  } finally {
    share?.release()
  }
}
