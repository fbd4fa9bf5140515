import { parentPort, workerData } from 'node:worker_threads'
import { isSetupError } from '../../engine/errors.js'
import type { Tensor } from './network.js'
import { openSession } from './session.js'
import type { ThreadMessage, ThreadRequest, ThreadSettings } from './threaded-network.js'

// The thread's entry point: its own session, driven by messages. Tensors are transferred both ways, not copied.

const { path, ...options } = workerData as ThreadSettings

function post(message: ThreadMessage, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, transfer)
}

function buffers(tensors: Record<string, Tensor>): ArrayBuffer[] {
  return Object.values(tensors).map(({ data }) => data.buffer)
}

try {
  const session = await openSession(path, options)
  const { inputs, outputs, runtime, runtimeHint, fallback } = session
  post({ kind: 'ready', facts: { inputs, outputs, runtime, runtimeHint, fallback } })
  parentPort?.on('message', ({ id, feeds, fetches }: ThreadRequest) => {
    session.run(feeds, fetches).then(
      (result) => post({ kind: 'ran', id, result }, [...buffers(result.feeds), ...buffers(result.fetches)]),
      (error: unknown) => post({ kind: 'failed', id, message: String(error) }),
    )
  })
} catch (error) {
  post({
    kind: 'failed',
    id: undefined,
    message: error instanceof Error ? error.message : String(error),
    missing: isSetupError(error) ? { cause: error.cause instanceof Error ? error.cause.stack : undefined } : undefined,
  })
}
