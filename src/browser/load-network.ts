import manifestJson from '../../models/embedded/model.json'
import { StemworkError } from '../core/engine/errors.js'
import { manifestSchema } from '../core/models/manifest.js'
import { networkOf } from '../core/models/session/network-of.js'
import type { Network } from '../core/models/session/network.js'
import { openWasmSession } from '../core/models/session/wasm-session.js'
import type { Architecture } from '../core/workflows/separation/architectures/architecture.js'
import { embeddedArchitecture } from '../core/workflows/separation/architectures/embedded.js'
import { type NetworkAddresses, notLoaded } from './assets.js'
import { env, InferenceSession, Tensor } from './onnxruntime.js'

/** Manifest of the bundled model. */
export const manifest = manifestSchema.parse(manifestJson)

/**
 * The bundled model's network, and the steps around it.
 *
 * @throws StemworkError `MODEL_UNAVAILABLE`; `MISSING_DEPENDENCY` when its WebAssembly cannot be loaded; the signal's
 *   reason
 */
export async function loadNetwork(
  { wasm, model }: NetworkAddresses,
  signal?: AbortSignal,
): Promise<{ network: Network; architecture: Architecture }> {
  // Always set: otherwise the runtime looks for its own script, whose address bundlers such as Turbopack do not keep.
  env.wasm.wasmPaths = { wasm: wasm ?? new URL('./ort-wasm-simd-threaded.wasm', import.meta.url).href }
  // More threads need shared memory, which browsers allow only on cross-origin isolated pages.
  env.wasm.numThreads = 1
  const address = model ?? new URL('../../models/embedded/model.onnx', import.meta.url).href
  const onnx = await download(address, signal)
  try {
    const session = await openWasmSession({ InferenceSession, Tensor }, onnx)
    const network = networkOf(session, { runtime: 'wasm' })
    return { network, architecture: await embeddedArchitecture(manifest, [network], {}) }
  } catch (error) {
    throw notLoaded(StemworkError.is(error) ? error.cause : error)
  }
}

async function download(address: string, signal: AbortSignal | undefined): Promise<Uint8Array> {
  const response = await fetch(address, { signal }).catch((error: unknown) => {
    signal?.throwIfAborted()
    throw unavailable(address, 'there was no answer', error)
  })
  if (!response.ok) throw unavailable(address, `the answer was ${response.status}`)
  const bytes = new Uint8Array(await response.arrayBuffer())
  if (bytes.length === manifest.bytes) return bytes
  throw unavailable(address, `it has ${bytes.length} bytes; expected ${manifest.bytes}`)
}

function unavailable(address: string, what: string, cause?: unknown): StemworkError {
  return new StemworkError(
    'MODEL_UNAVAILABLE',
    `The model could not be loaded from ${address}: ${what}. Serve the model of the package there, or name its ` +
      'address in assets.model.',
    { cause },
  )
}
