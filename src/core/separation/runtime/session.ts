import { availableParallelism } from 'node:os'
import { StemworkError } from '../../engine/errors.js'
import type { ExecutionProvider, ProviderFallback } from './execution-provider.js'
import type { Network, NetworkResult, Tensor, TensorInfo } from './network.js'

export interface SessionOptions {
  /** Threads of one inference. Default: `defaultThreads()`. */
  threads?: number
  /** What should run the network; where that cannot be had, the processor does. Default: `cpu`. */
  provider?: ExecutionProvider
}

/** One processor stays free for decoding, spectra and the host. Never the runtime's own default, which ignores CPU affinity. */
export function defaultThreads(): number {
  return Math.max(1, availableParallelism() - 1)
}

/**
 * Loads an ONNX file with onnxruntime-node into this thread. `run` blocks the thread for the whole inference; outside tests
 * use `openNetworkThread`.
 *
 * @throws StemworkError `MISSING_DEPENDENCY` when onnxruntime-node is not installed
 */
export async function openSession(path: string, options: SessionOptions = {}): Promise<Network> {
  const { threads = defaultThreads(), provider: wanted = 'cpu' } = options
  const { InferenceSession, Tensor: OrtTensor } = await importRuntime()
  const create = (provider: ExecutionProvider) =>
    InferenceSession.create(path, {
      executionProviders: [provider],
      executionMode: 'sequential',
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      // One block for all activations is no faster, and costs HTDemucs 5.1 instead of 3.6 GB. Without the arena it would take 2.6 GB,
      // but a quarter more time.
      enableMemPattern: false,
      // Threads that wait for work by spinning take the processor from decoding and spectra, and from everybody else: on two busy
      // processors HTDemucs used 15 % more processor time with it, and on idle ones it was no faster.
      extra: { session: { intra_op: { allow_spinning: '0' } } },
      logSeverityLevel: 3,
    })
  let fallback: ProviderFallback | undefined
  // A list of providers throws when the first one's libraries are missing instead of trying the next.
  const session = await create(wanted).catch((error: unknown) => {
    if (wanted === 'cpu') throw error
    fallback = { wanted, reason: error instanceof Error ? error.message : String(error) }
    return create('cpu')
  })
  const lend = (tensors: Record<string, Tensor>) =>
    Object.fromEntries(
      Object.entries(tensors).map(([name, { data, dims }]) => [name, new OrtTensor('float32', data, dims)]),
    )
  let last: Promise<unknown> = Promise.resolve()
  let isOpen = true

  return {
    inputs: session.inputMetadata.map(tensorInfo),
    outputs: session.outputMetadata.map(tensorInfo),
    fallback,
    get isOpen() {
      return isOpen
    },
    run(feeds, fetches) {
      const result = last.then(async (): Promise<NetworkResult> => {
        const startedAt = performance.now()
        // Given as tensors, the outputs are written into the caller's memory.
        await session.run(lend(feeds), lend(fetches))
        return { feeds, fetches, runMs: performance.now() - startedAt }
      })
      last = result.catch(() => undefined)
      return result
    },
    async close() {
      isOpen = false
      await last
      await session.release()
    },
  }
}

async function importRuntime() {
  try {
    return (await import('onnxruntime-node')).default
  } catch (error) {
    throw new StemworkError(
      'MISSING_DEPENDENCY',
      'Separation needs the package onnxruntime-node, which could not be loaded. ' +
        'Install it beside stemwork: npm install onnxruntime-node --onnxruntime-node-install=skip',
      { cause: error },
    )
  }
}

function tensorInfo(metadata: {
  name: string
  isTensor: boolean
  type?: string
  shape?: readonly (number | string)[]
}): TensorInfo {
  return { name: metadata.name, type: metadata.type ?? 'unknown', shape: metadata.shape ?? [] }
}
