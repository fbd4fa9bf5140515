import { invalidOptions, StemworkError } from '../../engine/errors.js'
import { scriptFile } from '../../engine/package-files.js'
import type { Network, NetworkFacts, NetworkResult, Tensor } from './network.js'
import { startRuntimeWorker } from './runtime-worker.js'
import { type SessionOptions, withDefaults } from './session.js'

export interface ThreadSettings extends Required<SessionOptions> {
  path: string
}

export interface ThreadRequest {
  id: number
  feeds: Record<string, Tensor>
  fetches: Record<string, Tensor>
}

export type ThreadMessage =
  | { kind: 'ready'; facts: NetworkFacts }
  | { kind: 'ran'; id: number; result: NetworkResult }
  /** Without an `id`, the network could not be loaded. */
  | {
      kind: 'failed'
      id: number | undefined
      message: string
      /** Set if the runtime is missing or cannot run this network; with the stack of the cause. */
      missing?: { cause?: string }
    }

const entry = scriptFile('core/models/session/network-thread.js')

/**
 * Loads a network into its own thread, so that this thread can decode and compute spectra while an inference runs.
 * Tensors are transferred there and back without a copy: until the run ends, the arrays that were passed in are
 * detached.
 *
 * An idle thread does not keep the process alive. It must never be terminated during a run, because that would abort
 * the process: `close` waits for runs in progress. To stop a run at once, kill the process.
 *
 * @throws StemworkError `MISSING_DEPENDENCY` when the runtime is missing or cannot run this network,
 * `INVALID_OPTIONS` when the file is not an ONNX model
 */
export async function openNetworkThread(path: string, options: SessionOptions = {}): Promise<Network> {
  const settings: ThreadSettings = { path, ...withDefaults(options) }
  const worker = startRuntimeWorker(entry, settings)
  const waiting = new Map<number, { resolve(result: NetworkResult): void; reject(error: unknown): void }>()
  let nextId = 0
  let lost: unknown

  const settle = (id: number) => {
    const waiter = waiting.get(id)
    waiting.delete(id)
    if (waiting.size === 0) worker.unref()
    return waiter
  }

  const ready = new Promise<NetworkFacts>((resolve, reject) => {
    worker.on('message', (message: ThreadMessage) => {
      switch (message.kind) {
        case 'ready':
          return resolve(message.facts)
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

  const facts = await ready.catch(async (error: unknown) => {
    await worker.terminate()
    throw error
  })
  worker.unref()
  return {
    ...facts,
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

function loadError({ message, missing }: { message: string; missing?: { cause?: string } }): StemworkError {
  if (missing) {
    const { cause: stack } = missing
    const cause = stack === undefined ? undefined : Object.assign(new Error(stack.split('\n', 1)[0]), { stack })
    return new StemworkError('MISSING_DEPENDENCY', message, { cause })
  }
  return invalidOptions(
    'The model file could not be loaded as an ONNX network. Check that it is complete and that the manifest names ' +
      'the right file.',
    new Error(message),
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
