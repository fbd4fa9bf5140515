import { readFileSync } from 'node:fs'

/** A memory of floats, and functions that work on it. Their parameters are offsets and counts of floats. */
export type Kernel<Functions> = Functions & { memory: Float32Array<ArrayBuffer> }

/** The names of the sources in `assembly/`. */
export type KernelName =
  'dot-product' | 'flac-kernels' | 'frame-kernels' | 'mp3-kernels' | 'pack-stereo' | 'wiener-kernels'

/**
 * A new memory with room for that many floats, all 0, and the kernel's functions over it: the WebAssembly ones, or the plain ones
 * where the machine has no SIMD. Both give the same results bit for bit.
 */
export function createKernel<Functions extends object>(
  name: KernelName,
  floats: number,
  plain: (memory: Float32Array<ArrayBuffer>) => Functions,
): Kernel<Functions> {
  if (!hasSimd()) {
    const memory = new Float32Array(floats)
    return { memory, ...plain(memory) }
  }
  const { Memory, Instance } = webAssembly
  const memory = new Memory({ initial: Math.ceil((floats * Float32Array.BYTES_PER_ELEMENT) / pageBytes) })
  const instance = new Instance(compiled(name), { env: { memory } })
  return { memory: new Float32Array(memory.buffer), ...(instance.exports as Functions) }
}

/** Whether the machine runs WebAssembly with SIMD: x86 processors without SSE4.1 and Node.js with `--jitless` do not. */
export function hasSimd(): boolean {
  return (simd ??= (webAssembly as WebAssemblyApi | undefined)?.validate(bytesOf('dot-product')) ?? false)
}

let simd: boolean | undefined

/** Code becomes fast only after some time of use, which should not restart with every track. */
const modules = new Map<KernelName, object>()

function compiled(name: KernelName): object {
  let module = modules.get(name)
  if (!module) modules.set(name, (module = new webAssembly.Module(bytesOf(name))))
  return module
}

function bytesOf(name: KernelName): Uint8Array {
  return readFileSync(new URL(`${name}.wasm`, import.meta.url))
}

const pageBytes = 65_536

/** What is used of the global `WebAssembly`, which the types of Node.js do not describe. */
interface WebAssemblyApi {
  Memory: new (size: { initial: number }) => { buffer: ArrayBuffer }
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object, imports: object) => { exports: object }
  validate(bytes: Uint8Array): boolean
}

const webAssembly = (globalThis as unknown as { WebAssembly: WebAssemblyApi }).WebAssembly
