import manifestJson from '../../models/embedded/model.json'
import { StemworkError } from '../core/engine/errors.js'
import { manifestSchema } from '../core/models/manifest.js'
import { networkOf } from '../core/models/session/network-of.js'
import type { Network } from '../core/models/session/network.js'
import { openWasmSession } from '../core/models/session/wasm-session.js'
import { env, InferenceSession, Tensor } from './onnxruntime.js'

/** Of the bundled model. */
export const manifest = manifestSchema.parse(manifestJson)

/** Addresses, where they are not beside the worker's script. */
export interface NetworkAddresses {
  wasm: string | undefined
  model: string | undefined
}

/**
 * The bundled model's network.
 *
 * @throws StemworkError `MODEL_UNAVAILABLE`; the signal's reason
 */
export async function loadNetwork({ wasm, model }: NetworkAddresses, signal?: AbortSignal): Promise<Network> {
  // Else it is beside this script.
  if (wasm !== undefined) env.wasm.wasmPaths = { wasm }
  // More threads need memory that the page may share only if its server isolates it from others.
  env.wasm.numThreads = 1
  const address = model ?? new URL('../../models/embedded/model.onnx', import.meta.url).href
  const session = await openWasmSession({ InferenceSession, Tensor }, await download(address, signal))
  return networkOf(session, { runtime: 'wasm' })
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
