import PQueue from 'p-queue'

/** As libuv reads it. */
const threads = Number(process.env['UV_THREADPOOL_SIZE']) || 4

/**
 * Writes, syncs, and names that are made or removed: at most half as many at a time as the process has threads for files. A busy
 * disk holds each for as long as it likes, and the other half keeps reads, name look-ups and the job database going.
 */
const changes = new PQueue({ concurrency: Math.max(1, Math.floor(threads / 2)) })

/** Makes one change when its turn comes. One that waits for another in here would hold both up: each call of the system alone. */
export async function changeDisk<Result>(change: () => Promise<Result>): Promise<Result> {
  return await changes.add(change)
}
