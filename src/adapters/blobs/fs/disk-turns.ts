import { Shares } from '../../../core/engine/limits/shares.js'

/** Makes one system call when its turn comes. A call that waits for another turn would block both. */
export type DiskTurn = <Result>(call: () => Promise<Result>) => Promise<Result>

/** Parsed the same way as in libuv. */
const threads = Number(process.env['UV_THREADPOOL_SIZE']) || 4

/**
 * Busy applications get half of the process's file threads for writes, syncs, creations and removals, and a quarter for
 * reads. A busy disk may block each call for long: the other threads remain for name look-ups and the job database, and
 * for one more call of each kind by applications that seldom ask.
 */
const changes = new Shares({ total: Math.max(1, Math.floor(threads / 2)) + 1, reserve: 1 })
const reads = new Shares({ total: Math.max(1, Math.floor(threads / 4)) + 1, reserve: 1 })

/** Turns of an owner to change files. Default of `app`: the owner in the key, an upload's application or a job. */
export function changesOf(key: string, app = ownerIn(key)): DiskTurn {
  return (call) => changes.use(app, call)
}

/** Turns of an application to read files. */
export function readsOf(key: string, app = ownerIn(key)): DiskTurn {
  return (call) => reads.use(app, call)
}

function ownerIn(key: string): string {
  return key.split('/', 2)[1] ?? key
}
