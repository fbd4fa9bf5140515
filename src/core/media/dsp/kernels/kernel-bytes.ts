import { compiledKernels } from './compiled-kernels.js'

/** The names of the sources in `assembly/`. */
export type KernelName = keyof typeof compiledKernels

export function kernelBytes(name: KernelName): Uint8Array {
  return Uint8Array.from(atob(compiledKernels[name]), (character) => character.charCodeAt(0))
}
