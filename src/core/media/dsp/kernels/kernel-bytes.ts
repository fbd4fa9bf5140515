import { readFileSync } from 'node:fs'

/** The names of the sources in `assembly/`. */
export type KernelName =
  'dot-product' | 'flac-kernels' | 'frame-kernels' | 'mp3-kernels' | 'pack-stereo' | 'wiener-kernels'

/** The compiled kernel. The only function here that reads files, so that another platform can bring its own. */
export function kernelBytes(name: KernelName): Uint8Array {
  return readFileSync(new URL(`${name}.wasm`, import.meta.url))
}
