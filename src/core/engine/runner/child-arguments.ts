import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packageFile } from '../package-files.js'

/**
 * The heap holds little: samples and tensors lie outside it. An input that makes it grow beyond this is an attack or a
 * bug.
 */
const heapMiB = 512

/**
 * V8 compiles a WebAssembly function again, with optimization, once it has done this much work. V8's own budget is
 * about a thirtieth of it: it optimizes most of the runtime of the networks while a song begins, which takes 3 s of
 * processor time and 40 MB, and does not pay even for a song of four minutes.
 */
const wasmTieringBudget = 50_000_000

/**
 * V8 options of the children. Tensors move to the network's thread and back, which V8 counts as freed and newly
 * allocated memory: it would collect its small initial heap once per segment, which takes a sixth of the processor time
 * of a light network.
 */
export const childArguments: readonly string[] = [
  '--initial-old-space-size=64',
  `--max-old-space-size=${heapMiB}`,
  `--wasm-tiering-budget=${wasmTieringBudget}`,
]

/**
 * Lets a child find packages under Yarn Plug'n'Play. The host has this in its `NODE_OPTIONS`, which children do not
 * inherit.
 */
export function plugAndPlayArguments(): readonly string[] {
  if (process.versions.pnp === undefined) return []
  const hook = createRequire(packageFile('package.json')).resolve('pnpapi')
  const loader = join(hook, '../.pnp.loader.mjs')
  return ['--require', hook, ...(existsSync(loader) ? ['--experimental-loader', pathToFileURL(loader).href] : [])]
}
