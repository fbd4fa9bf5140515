import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { StemworkError } from '../../engine/errors.js'
import type { ProviderFallback } from './execution-provider.js'
import type { Network, NetworkResult, Tensor, TensorInfo } from './network.js'
import { defaultThreads, type SessionOptions } from './session.js'

export interface ThreadSettings extends Required<SessionOptions> {
  path: string
}

export interface ThreadRequest {
  id: number
  feeds: Record<string, Tensor>
  fetches: Record<string, Tensor>
}

export type ThreadMessage =
  | { kind: 'ready'; inputs: readonly TensorInfo[]; outputs: readonly TensorInfo[]; fallback?: ProviderFallback }
  | { kind: 'ran'; id: number; result: NetworkResult }
  /** Without an `id`, the network could not be loaded. */
  | {
      kind: 'failed'
      id: number | undefined
      message: string
      /** Why the runtime itself could not be loaded. */
      missing?: { stack: string }
    }

const entry = new URL('./network-thread.js', import.meta.url)

/**
 * Loads a network into its own thread, so that this thread can decode and compute spectra while an inference runs.
 * Tensors are transferred there and back without a copy: until the run ends, the arrays that were passed in are
 * detached.
 *
 * An idle thread does not keep the process alive. It must never be terminated during a run, because that would abort
 * the process: `close` waits for runs in progress. To stop a run at once, kill the process.
 *
 * @throws StemworkError `MISSING_DEPENDENCY` when onnxruntime-node is not installed, `INVALID_OPTIONS` when the file is
 * not an ONNX model
 */
export async function openNetworkThread(path: string, options: SessionOptions = {}): Promise<Network> {
  const { threads = defaultThreads(), provider = 'cpu' } = options
  const worker = new Worker(fileURLToPath(entry), { workerData: { path, threads, provider } satisfies ThreadSettings })
  const waiting = new Map<number, { resolve(result: NetworkResult): void; reject(error: unknown): void }>()
  let nextId = 0
  let lost: unknown

  const settle = (id: number) => {
    const waiter = waiting.get(id)
    waiting.delete(id)
    if (waiting.size === 0) worker.unref()
    return waiter
  }

  const ready = new Promise<Pick<Network, 'inputs' | 'outputs' | 'fallback'>>((resolve, reject) => {
    worker.on('message', (message: ThreadMessage) => {
      switch (message.kind) {
        case 'ready':
          return resolve(message)
        case 'ran':
          return settle(message.id)?.resolve(message.result)
        case 'failed':
          if (message.id === undefined) return reject(loadError(message))
          return settle(message.id)?.reject(runError(message.message))
        default:
          return message satisfies never
      }
    })
    const fail = (error: unknown) => {
      lost = error
      reject(runError(error))
      for (const id of waiting.keys()) settle(id)?.reject(runError(error))
    }
    worker.on('error', fail)
    worker.on('exit', (code) => fail(new Error(`the network's thread ended with code ${code}`)))
  })

  const shape = await ready.catch(async (error: unknown) => {
    await worker.terminate()
    throw error
  })
  worker.unref()
  return {
    inputs: shape.inputs,
    outputs: shape.outputs,
    fallback: shape.fallback,
    get isOpen() {
      return lost === undefined
    },
    run(feeds, fetches) {
      if (lost !== undefined) return Promise.reject(runError(lost))
      const id = nextId++
      worker.ref()
      const result = new Promise<NetworkResult>((resolve, reject) => waiting.set(id, { resolve, reject }))
      const transfer = [feeds, fetches].flatMap((tensors) => Object.values(tensors).map(({ data }) => data.buffer))
      worker.postMessage({ id, feeds, fetches } satisfies ThreadRequest, transfer)
      return result
    },
    async close() {
      lost ??= new Error('the network was closed')
      while (waiting.size > 0) await new Promise((resolve) => worker.once('message', resolve))
      await worker.terminate()
    },
  }
}

function loadError({ message, missing }: { message: string; missing?: { stack: string } }): StemworkError {
  if (missing) {
    const cause = Object.assign(new Error(missing.stack.split('\n', 1)[0]), { stack: missing.stack })
    return new StemworkError('MISSING_DEPENDENCY', message, { cause })
  }
  return new StemworkError(
    'INVALID_OPTIONS',
    'The model file could not be loaded as an ONNX network. Check that it is complete and that the manifest names ' +
      'the right file.',
    {
      cause: new Error(message),
    },
  )
}

function runError(cause: unknown): StemworkError {
  return new StemworkError(
    'INTERNAL_ERROR',
    'The network failed on this audio. Try again; if it fails again, try another model.',
    {
      retryable: true,
      cause: cause instanceof Error ? cause : new Error(String(cause)),
    },
  )
}
