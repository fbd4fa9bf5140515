import PQueue from 'p-queue'

/** Read the same way as libuv does. */
const threads = Number(process.env['UV_THREADPOOL_SIZE']) || 4

/**
 * Limits writes, syncs, creations and removals to half of the process's file threads. A busy disk may block each of
 * them for long; the other half keeps reads, name look-ups and the job database going.
 */
const changes = new PQueue({ concurrency: Math.max(1, Math.floor(threads / 2)) })

/**
 * Makes one change when its turn comes. Use it for single system calls only: a change that waits for another one here
 * would block both.
 */
export async function changeDisk<Result>(change: () => Promise<Result>): Promise<Result> {
  return await changes.add(change)
}
