import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packageFile } from '../package-files.js'

/**
 * The heap holds little: samples and tensors lie outside it. A heap that grows beyond this limit is a sign of a
 * malicious input or a bug.
 */
const heapMiB = 512

/**
 * V8 recompiles a WebAssembly function with optimization once it has done this much work. V8's default budget is about
 * a thirtieth of this: with it, V8 optimizes most of the networks' runtime at the start of a song, which costs 3 s of
 * processor time and 40 MB and does not pay off even for a song of four minutes.
 */
const wasmTieringBudget = 50_000_000

/**
 * V8 options of the children. Tensors move to the network's thread and back, which V8 counts as freed and newly
 * allocated memory. Without a larger initial heap, it would collect garbage once per segment, which takes a sixth of
 * the processor time of a light network.
 */
export const childArguments: readonly string[] = [
  '--initial-old-space-size=64',
  `--max-old-space-size=${heapMiB}`,
  `--wasm-tiering-budget=${wasmTieringBudget}`,
]

/**
 * Node arguments that let a child find packages under Yarn Plug'n'Play. The host has them in its `NODE_OPTIONS`, which
 * children do not inherit.
 */
export function plugAndPlayArguments(): readonly string[] {
  if (process.versions.pnp === undefined) return []
  const hook = createRequire(packageFile('package.json')).resolve('pnpapi')
  const loader = join(hook, '../.pnp.loader.mjs')
  return ['--require', hook, ...(existsSync(loader) ? ['--experimental-loader', pathToFileURL(loader).href] : [])]
}
