import PQueue from 'p-queue'

/** As libuv reads it. */
const threads = Number(process.env['UV_THREADPOOL_SIZE']) || 4

/**
 * Syncs of the disk, at most half as many at a time as the process has threads for files: a busy disk holds each for as long as it
 * likes, and the other half keeps reads, name look-ups and the job database going.
 */
const syncs = new PQueue({ concurrency: Math.max(1, Math.floor(threads / 2)) })

/** Makes what was written through this handle durable. */
export async function syncHandle(handle: { sync(): Promise<void> }): Promise<void> {
  await syncs.add(() => handle.sync())
}
