import { fileURLToPath } from 'node:url'
import { SHARE_ENV, Worker } from 'node:worker_threads'

/**
 * A thread that loads a runtime. It changes the environment of the process, not a copy of its own: a native library
 * sees no other.
 */
export function startRuntimeWorker(entry: URL, workerData: unknown): Worker {
  return new Worker(fileURLToPath(entry), { workerData, env: SHARE_ENV })
}
