import { readFile, stat } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { StemworkError } from '../../engine/errors.js'
import { installedFile } from '../../engine/package-files.js'
import { installCommand } from './runtime.js'
import type { RuntimeSession, RuntimeSettings } from './runtime-session.js'
import { openWasmSession } from './wasm-session.js'

const memoryBytes = 4 * 2 ** 30
/** While a network is loaded, the memory holds the file, its parsed form and the weights: measured as 3.1 files. */
const bytesPerFileByte = 3.2

/**
 * Loads an ONNX file with the WebAssembly build of onnxruntime, which needs no native library. `run` blocks the
 * thread. A thread has one instance of the runtime, which keeps the number of threads of the first network.
 *
 * @throws StemworkError `MISSING_DEPENDENCY` for a network that its memory cannot hold, or an unsupported processor
 */
export async function openWasm(path: string, { threads, provider }: RuntimeSettings): Promise<RuntimeSession> {
  await checkSize(path)
  const session = await openWasmSession(await importWasm(threads), await readFile(path))
  return { ...session, fallback: provider === 'cpu' ? undefined : { wanted: provider, reason: onlyCpu } }
}

async function importWasm(threads: number) {
  // Compiling several functions at once takes 80 MB more, and saves nothing where the network needs the processors.
  setFlagsFromString('--wasm-num-compilation-tasks=1')
  const runtime = await import('./onnxruntime-web.js')
  const { wasm } = runtime.env
  wasm.wasmPaths = {
    mjs: pathToFileURL(installedFile('dist/core/models/session/ort-wasm-simd-threaded.mjs')).href,
    wasm: pathToFileURL(installedFile('dist/browser/ort-wasm-simd-threaded.wasm')).href,
  }
  wasm.numThreads = threads
  return runtime
}

async function checkSize(path: string): Promise<void> {
  const { size } = await stat(path)
  if (bytesPerFileByte * size <= memoryBytes) return
  throw new StemworkError('MISSING_DEPENDENCY', tooLarge(size))
}

const onlyCpu = 'the WebAssembly runtime only uses the CPU; onnxruntime-node is what uses accelerators.'
const tooLarge = (size: number) =>
  `The network of this model has ${Math.round(size / 1e6)} MB and needs more than the 4 GB of memory that ` +
  `WebAssembly has. Use the native runtime: ${installCommand}`
