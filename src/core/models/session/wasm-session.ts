import type { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-web'
import { StemworkError } from '../../engine/errors.js'
import type { Tensor } from './network.js'
import { installCommand } from './runtime.js'
import { type RuntimeSession, tensorInfo } from './runtime-session.js'

/** The used part of onnxruntime-web. */
export interface WasmRuntime {
  InferenceSession: typeof InferenceSession
  Tensor: typeof OrtTensor
}

/**
 * Loads an ONNX file with the WebAssembly build of onnxruntime. `run` blocks the thread.
 *
 * @throws StemworkError `MISSING_DEPENDENCY` for an unsupported processor
 */
export async function openWasmSession(runtime: WasmRuntime, onnx: Uint8Array): Promise<RuntimeSession> {
  const session = await runtime.InferenceSession.create(onnx, {
    executionProviders: ['wasm'],
    executionMode: 'sequential',
    enableMemPattern: false,
    extra: { session: { intra_op: { allow_spinning: '0' } } },
    logSeverityLevel: 3,
  }).catch((error: unknown) => {
    throw isUnsupported(error) ? new StemworkError('MISSING_DEPENDENCY', notSupported, { cause: error }) : error
  })
  const lend = (tensors: Record<string, Tensor>) =>
    Object.fromEntries(
      Object.entries(tensors).map(([name, { data, dims }]) => [name, new runtime.Tensor('float32', data, dims)]),
    )

  return {
    inputs: session.inputMetadata.map(tensorInfo),
    outputs: session.outputMetadata.map(tensorInfo),
    async run(feeds, fetches) {
      // The runtime has its own memory and cannot write into the caller's.
      const results = await session.run(lend(feeds), Object.keys(fetches))
      for (const [name, { data, dims }] of Object.entries(fetches)) {
        const result = results[name]!
        if (String(result.dims) !== String(dims))
          throw new RangeError(`The output ${name} has the shape ${String(result.dims)}; expected ${String(dims)}.`)
        data.set(result.data as Float32Array)
      }
    },
    release: () => session.release(),
  }
}

/** Whether the runtime itself could not start. */
function isUnsupported(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('no available backend found')
}

const notSupported =
  'The WebAssembly runtime cannot run here: it needs a processor with SIMD. ' +
  `Use the native runtime: ${installCommand}`
