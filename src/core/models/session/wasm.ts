import { readFile, stat } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { StemworkError } from '../../engine/errors.js'
import { installedFile } from '../../engine/package-files.js'
import type { Tensor } from './network.js'
import { installCommand } from './runtime.js'
import { type RuntimeSession, type RuntimeSettings, tensorInfo } from './runtime-session.js'

const folder = 'dist/core/models/session/'
const memoryBytes = 4 * 2 ** 30
/** While a network is loaded, the memory holds the file, its parsed form and the weights: 3.1 files were measured. */
const bytesPerFileByte = 3.2

/**
 * Loads an ONNX file with the WebAssembly build of onnxruntime, which needs no native library. `run` blocks the
 * thread. A thread has one instance of it, whose number of threads is that of the first network.
 *
 * @throws StemworkError `MISSING_DEPENDENCY` for a network that its memory cannot hold, or a processor that it does
 * not run on
 */
export async function openWasm(path: string, { threads, provider }: RuntimeSettings): Promise<RuntimeSession> {
  await checkSize(path)
  const { InferenceSession, Tensor: OrtTensor } = await importWasm(threads)
  const session = await InferenceSession.create(await readFile(path), {
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
      Object.entries(tensors).map(([name, { data, dims }]) => [name, new OrtTensor('float32', data, dims)]),
    )

  return {
    inputs: session.inputMetadata.map(tensorInfo),
    outputs: session.outputMetadata.map(tensorInfo),
    fallback: provider === 'cpu' ? undefined : { wanted: provider, reason: onlyCpu },
    async run(feeds, fetches) {
      // It has a memory of its own and cannot write into the caller's.
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

async function importWasm(threads: number) {
  // Compiling several functions at once takes 80 MB more, and saves nothing where the network needs the processors.
  setFlagsFromString('--wasm-num-compilation-tasks=1')
  const runtime = await import('./onnxruntime-web.js')
  const { wasm } = runtime.env
  wasm.wasmPaths = {
    mjs: pathToFileURL(installedFile(`${folder}ort-wasm-simd-threaded.mjs`)).href,
    wasm: pathToFileURL(installedFile(`${folder}ort-wasm-simd-threaded.wasm`)).href,
  }
  wasm.numThreads = threads
  return runtime
}

async function checkSize(path: string): Promise<void> {
  const { size } = await stat(path)
  if (bytesPerFileByte * size <= memoryBytes) return
  throw new StemworkError('MISSING_DEPENDENCY', tooLarge(size))
}

/** The runtime itself could not start. */
function isUnsupported(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('no available backend found')
}

const onlyCpu = 'the WebAssembly runtime only uses the CPU; onnxruntime-node is what uses accelerators.'
const notSupported =
  'The WebAssembly runtime cannot run here: it needs a processor with SIMD. ' +
  `Use the native runtime: ${installCommand}`
const tooLarge = (size: number) =>
  `The network of this model has ${Math.round(size / 1e6)} MB and needs more than the 4 GB of memory that ` +
  `WebAssembly has. Use the native runtime: ${installCommand}`
