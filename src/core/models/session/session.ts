import { availableParallelism } from 'node:os'
import { StemworkError } from '../../engine/errors.js'
import { importNative, openNative } from './native.js'
import type { Network, NetworkFacts } from './network.js'
import { networkOf } from './network-of.js'
import { defaultRuntime } from './default-runtime.js'
import type { RuntimeChoice } from './runtime.js'
import type { RuntimeSession, RuntimeSettings } from './runtime-session.js'

export interface SessionOptions extends Partial<RuntimeSettings> {
  /** Default: that of `STEMWORK_RUNTIME`, or `auto`. */
  runtime?: RuntimeChoice
}

/** Leaves one processor for decoding, spectra and the host. The runtime's own default would ignore CPU affinity. */
export function defaultThreads(): number {
  return Math.max(1, availableParallelism() - 1)
}

/** @throws StemworkError `INVALID_OPTIONS` if the environment names an unknown runtime */
export function withDefaults(options: SessionOptions): Required<SessionOptions> {
  const { threads = defaultThreads(), provider = 'cpu', runtime = defaultRuntime() } = options
  return { threads, provider, runtime }
}

/**
 * Loads an ONNX file into this thread. `run` blocks the thread for the whole inference; outside tests use
 * `openNetworkThread`.
 *
 * @throws StemworkError `MISSING_DEPENDENCY` when the runtime is missing or cannot run this network
 */
export async function openSession(path: string, options: SessionOptions = {}): Promise<Network> {
  const { runtime: choice, ...settings } = withDefaults(options)
  const { session, ...found } = await openRuntime(choice, path, settings)
  return networkOf(session, found)
}

async function openRuntime(
  choice: RuntimeChoice,
  path: string,
  settings: RuntimeSettings,
): Promise<Pick<NetworkFacts, 'runtime' | 'runtimeHint'> & { session: RuntimeSession }> {
  let runtimeHint: string | undefined
  if (choice !== 'wasm') {
    const native = await importNative().catch((error: unknown) => {
      if (choice === 'native' || !StemworkError.is(error)) throw error
      runtimeHint = `${slower} ${error.message}`
    })
    if (native) return { runtime: 'native', session: await openNative(native, path, settings) }
  }
  const { openWasm } = await import('./wasm.js')
  return { runtime: 'wasm', runtimeHint, session: await openWasm(path, settings) }
}

const slower = 'The networks run on WebAssembly. The native library would be about three times as fast.'
