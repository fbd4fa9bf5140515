import { Shares } from '../../../core/engine/limits/shares.js'

/** Does one system call when its turn comes. One that waits for another turn would block both. */
export type DiskTurn = <Result>(call: () => Promise<Result>) => Promise<Result>

/** Read the same way as libuv does. */
const threads = Number(process.env['UV_THREADPOOL_SIZE']) || 4

/**
 * Applications that ask a lot get half of the process's file threads for writes, syncs, creations and removals, and a
 * quarter for reads. A busy disk may block each call for long: the other threads remain for name look-ups and the job
 * database, and for one more call of each kind by applications that seldom ask.
 */
const changes = new Shares({ total: Math.max(1, Math.floor(threads / 2)) + 1, reserve: 1 })
const reads = new Shares({ total: Math.max(1, Math.floor(threads / 4)) + 1, reserve: 1 })

/** Turns of an application to change files. Without `app`, the key tells whose: an upload's application, or the job. */
export function changesOf(key: string, app = ownerIn(key)): DiskTurn {
  return (call) => changes.use(app, call)
}

/** The same, to read their bytes. */
export function readsOf(key: string, app = ownerIn(key)): DiskTurn {
  return (call) => reads.use(app, call)
}

function ownerIn(key: string): string {
  return key.split('/', 2)[1] ?? key
}
