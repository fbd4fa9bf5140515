import { StemworkError } from '../../engine/errors.js'
import type { ExecutionProvider, ProviderFallback } from './execution-provider.js'
import type { Tensor, TensorInfo } from './network.js'
import { readWithOpenSizes } from './open-sizes.js'
import { installCommand } from './runtime.js'
import { type RuntimeSession, type RuntimeSettings, tensorInfo } from './runtime-session.js'

/**
 * Loads onnxruntime-node, without its telemetry unless `ORT_DISABLE_TELEMETRY` is set: on Linux and macOS it reports
 * every network that it opens, with an identifier of the device.
 *
 * @throws StemworkError `MISSING_DEPENDENCY` when it is not installed or has no library that works here
 */
export async function importNative() {
  process.env.ORT_DISABLE_TELEMETRY ??= '1'
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
  const create = async (provider: ExecutionProvider): Promise<Opened> => ({
    session: await InferenceSession.create(path, { ...settings(threads), executionProviders: [provider] }),
  })
  let fallback: ProviderFallback | undefined
  // With a list of providers, the runtime throws when the first one's libraries are missing; it does not try the next.
  const { session, shapes } =
    wanted === 'cpu'
      ? await openForCpu(InferenceSession, path, threads)
      : await create(wanted).catch((error: unknown) => {
          fallback = { wanted, reason: error instanceof Error ? error.message : String(error) }
          return openForCpu(InferenceSession, path, threads)
        })
  const lend = (tensors: Record<string, Tensor>) =>
    Object.fromEntries(
      Object.entries(tensors).map(([name, { data, dims }]) => [name, new OrtTensor('float32', data, dims)]),
    )

  return {
    inputs: session.inputMetadata.map(tensorInfo).map((input) => ({
      ...input,
      shape: shapes?.get(input.name) ?? input.shape,
    })),
    outputs: session.outputMetadata.map(tensorInfo),
    fallback,
    // Outputs that are passed as tensors are written into the caller's memory.
    run: async (feeds, fetches) => void (await session.run(lend(feeds), lend(fetches))),
    release: () => session.release(),
  }
}

type Sessions = Awaited<ReturnType<typeof importNative>>['InferenceSession']

interface Opened {
  session: Awaited<ReturnType<Sessions['create']>>
  /** Shapes of the inputs whose sizes were made dynamic. */
  shapes?: ReadonlyMap<string, TensorInfo['shape']>
}

/** A separate function, so that nothing keeps the file's bytes in memory longer. */
async function openForCpu(sessions: Sessions, path: string, threads: number): Promise<Opened> {
  const options = { ...settings(threads), executionProviders: ['cpu'] }
  const network = await readWithOpenSizes(path)
  if (!network) return { session: await sessions.create(path, options) }
  return { session: await sessions.create(network.onnx, options), shapes: network.shapes }
}

function settings(threads: number) {
  return {
    executionMode: 'sequential',
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    // A single block for all activations is no faster and costs HTDemucs 5.1 GB instead of 3.6 GB, and the bundled
    // network 55 MB. Without the arena they take no less, and up to 40 % more time. The planner holds buffers for later
    // layers of one shape: its switch `enable_mem_reuse` is in the runtime's Python interface only. See `openSizes`.
    enableMemPattern: false,
    // Spinning threads take CPU time from decoding, spectra and other processes. With spinning, HTDemucs used 15 %
    // more CPU time on two busy processors and was no faster on idle ones.
    extra: { session: { intra_op: { allow_spinning: '0' } } },
    logSeverityLevel: 3,
  } as const
}

const notInstalled = `onnxruntime-node is not installed. Install it: ${installCommand}`
const notLoadable =
  'The package onnxruntime-node is installed, but its native library cannot be loaded: it is damaged, or of ' +
  'another platform. ' +
  `Remove node_modules/onnxruntime-node and install it again on this machine: ${installCommand}. There is none for ` +
  'Alpine Linux and Intel Macs.'

/** The message must name a package: on platforms without a library, a file inside the package is not found either. */
function isNotInstalled(error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException
  return /^(ERR_)?MODULE_NOT_FOUND$/.test(code ?? '') && /['"]onnxruntime-(node|common)['"]/.test(message)
}
