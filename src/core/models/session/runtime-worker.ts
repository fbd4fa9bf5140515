import { fileURLToPath } from 'node:url'
import { SHARE_ENV, Worker } from 'node:worker_threads'

/**
 * Starts a thread that loads a runtime. It shares the environment of the process instead of a copy: native libraries
 * see no other.
 */
export function startRuntimeWorker(entry: URL, workerData: unknown): Worker {
  return new Worker(fileURLToPath(entry), { workerData, env: SHARE_ENV })
}
