import { StemworkError } from '../../engine/errors.js'
import type { ExecutionProvider, ProviderFallback } from './execution-provider.js'
import type { Tensor } from './network.js'
import { installCommand } from './runtime.js'
import { type RuntimeSession, type RuntimeSettings, tensorInfo } from './runtime-session.js'

/**
 * Loads onnxruntime-node.
 *
 * @throws StemworkError `MISSING_DEPENDENCY` when it is not installed or has no library that works here
 */
export async function importNative() {
  try {
    return (await import('onnxruntime-node')).default
  } catch (error) {
    throw new StemworkError('MISSING_DEPENDENCY', isNotInstalled(error) ? notInstalled : notLoadable, { cause: error })
  }
}

/** Loads an ONNX file. `run` blocks the thread. */
export async function openNative(
  { InferenceSession, Tensor: OrtTensor }: Awaited<ReturnType<typeof importNative>>,
  path: string,
  { threads, provider: wanted }: RuntimeSettings,
): Promise<RuntimeSession> {
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

  return {
    inputs: session.inputMetadata.map(tensorInfo),
    outputs: session.outputMetadata.map(tensorInfo),
    fallback,
    // Outputs that are passed as tensors are written into the caller's memory.
    run: async (feeds, fetches) => void (await session.run(lend(feeds), lend(fetches))),
    release: () => session.release(),
  }
}

const notInstalled = `onnxruntime-node is not installed. Install it: ${installCommand}`
const notLoadable =
  'The package onnxruntime-node is installed, but its native library cannot be loaded: it is damaged, or of ' +
  'another platform. ' +
  `Remove node_modules/onnxruntime-node and install it again on this machine: ${installCommand}. There is none for ` +
  'Alpine Linux and Intel Macs.'

/** The library inside the package is not found either, on a platform that it has none for. */
function isNotInstalled(error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException
  return /^(ERR_)?MODULE_NOT_FOUND$/.test(code ?? '') && /['"]onnxruntime-(node|common)['"]/.test(message)
}
