import { availableParallelism } from 'node:os'
import { StemworkError } from '../../engine/errors.js'
import type { ExecutionProvider, ProviderFallback } from './execution-provider.js'
import type { Network, NetworkResult, Tensor, TensorInfo } from './network.js'

export interface SessionOptions {
  /** Threads per inference. Default: `defaultThreads()`. */
  threads?: number
  /** What should run the network; if it is not available, the CPU does. Default: `cpu`. */
  provider?: ExecutionProvider
}

/** Leaves one processor for decoding, spectra and the host. The runtime's own default would ignore CPU affinity. */
export function defaultThreads(): number {
  return Math.max(1, availableParallelism() - 1)
}

/**
 * Loads an ONNX file with onnxruntime-node into this thread. `run` blocks the thread for the whole inference; outside
 * tests use `openNetworkThread`.
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
      // A single block for all activations is no faster and costs HTDemucs 5.1 GB instead of 3.6 GB. Without the arena
      // it would take 2.6 GB, but 25 % more time. What is live at once is 0.6 GB: the planner holds buffers for later
      // layers of the same shape. Its switch `enable_mem_reuse` (0.8 GB) is in the runtime's Python interface, but not
      // in its C interface.
      enableMemPattern: false,
      // Spinning threads take CPU time from decoding, spectra and other processes. With spinning, HTDemucs used 15 %
      // more CPU time on two busy processors and was no faster on idle ones.
      extra: { session: { intra_op: { allow_spinning: '0' } } },
      logSeverityLevel: 3,
    })
  let fallback: ProviderFallback | undefined
  // With a list of providers, the runtime throws when the first one's libraries are missing; it does not try the next.
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
        // Outputs that are passed as tensors are written into the caller's memory.
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
    throw new StemworkError('MISSING_DEPENDENCY', isNotInstalled(error) ? notInstalled : notLoadable, { cause: error })
  }
}

const install = 'npm install onnxruntime-node --onnxruntime-node-install=skip'
const notInstalled = `Separation needs the package onnxruntime-node, which is not installed. Install it: ${install}`
const notLoadable =
  'The package onnxruntime-node is installed, but its native library cannot be loaded: it is damaged, or of ' +
  'another platform. ' +
  `Remove node_modules/onnxruntime-node and install it again on this machine: ${install}. There is none for Alpine ` +
  'Linux and Intel Macs.'

/** The library inside the package is not found either, on a platform that it has none for. */
function isNotInstalled(error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException
  return /^(ERR_)?MODULE_NOT_FOUND$/.test(code ?? '') && /['"]onnxruntime-(node|common)['"]/.test(message)
}

function tensorInfo(metadata: {
  name: string
  isTensor: boolean
  type?: string
  shape?: readonly (number | string)[]
}): TensorInfo {
  return { name: metadata.name, type: metadata.type ?? 'unknown', shape: metadata.shape ?? [] }
}
