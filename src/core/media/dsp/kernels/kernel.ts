import { StemworkError } from '../../../engine/errors.js'
import { kernelBytes, type KernelName } from './kernel-bytes.js'

/** A memory of floats, and functions that work on it. Their parameters are offsets and counts of floats. */
export type Kernel<Functions> = Functions & { memory: Float32Array<ArrayBuffer> }

/**
 * Creates a memory with room for that many floats, all 0, and the kernel's functions on it.
 *
 * @throws StemworkError `MISSING_DEPENDENCY` where the process has no WebAssembly with SIMD
 */
export function createKernel<Functions extends object>(name: KernelName, floats: number): Kernel<Functions> {
  const module = compiled(name)
  const { Memory, Instance } = webAssembly()
  const memory = new Memory({ initial: Math.ceil((floats * Float32Array.BYTES_PER_ELEMENT) / pageBytes) })
  const instance = new Instance(module, { env: { memory } })
  return { memory: new Float32Array(memory.buffer), ...(instance.exports as Functions) }
}

/** @throws StemworkError as `createKernel` does, for code of other packages that is compiled in the same way */
export function requireSimd(): void {
  compiled('dot-product')
}

/** Kept for the process: code becomes fast only after some use, and must not start over with every track. */
const modules = new Map<KernelName, object>()

function compiled(name: KernelName): object {
  const known = modules.get(name)
  if (known) return known
  const bytes = kernelBytes(name)
  try {
    const module = new (webAssembly().Module)(bytes)
    modules.set(name, module)
    return module
  } catch (error) {
    throw new StemworkError(
      'MISSING_DEPENDENCY',
      'This process cannot compile WebAssembly with SIMD, which audio code needs. Start Node.js without --jitless, ' +
        'on a processor with SSE4.1 (x86, from 2008 on) or on ARM64.',
      { cause: error },
    )
  }
}

const pageBytes = 65_536

/** The used part of the global `WebAssembly`, which the types of Node.js do not describe. */
interface WebAssemblyApi {
  Memory: new (size: { initial: number }) => { buffer: ArrayBuffer }
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object, imports: object) => { exports: object }
}

const webAssembly = () => (globalThis as unknown as { WebAssembly: WebAssemblyApi }).WebAssembly
