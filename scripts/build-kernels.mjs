// Compiles each kernel of src/core/media/dsp/kernels/assembly (AssemblyScript) to a .wasm file beside the compiled
// TypeScript.
import { readdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import asc from 'assemblyscript/asc'

const root = fileURLToPath(new URL('..', import.meta.url))
const kernels = 'core/media/dsp/kernels'
const assembly = `src/${kernels}/assembly`

/** Those in the folder of parts are no kernels themselves. */
const sources = readdirSync(join(root, assembly), { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.ts'),
)
const compiler = fileURLToPath(import.meta.resolve('assemblyscript/asc'))
const inputs = [fileURLToPath(import.meta.url), compiler, ...sources.map((file) => join(root, assembly, file))]
const changedAt = Math.max(...inputs.map(modifiedAt))
const built = new Set()
for (const source of sources.filter((file) => dirname(file) === '.')) {
  const output = `${basename(source, '.ts')}.wasm`
  built.add(output)
  if (modifiedAt(join(root, 'dist', kernels, output)) > changedAt) continue
  const { error } = await asc.main(
    [
      `${assembly}/${source}`,
      '--outFile',
      `dist/${kernels}/${output}`,
      '--baseDir',
      root,
      '-O3',
      // No runtime: the kernels allocate nothing, and work on the memory that their instance is given.
      '--enable',
      'simd',
      '--runtime',
      'stub',
      '--importMemory',
      '--noExportMemory',
    ],
    { stdout: process.stdout, stderr: process.stderr },
  )
  if (error) {
    console.error(`The kernel ${assembly}/${source} could not be compiled; the lines above say why.`)
    process.exit(1)
  }
}
for (const file of readdirSync(join(root, 'dist', kernels))) {
  if (file.endsWith('.wasm') && !built.has(file)) rmSync(join(root, 'dist', kernels, file))
}

/** In milliseconds; 0 where there is no such file. */
function modifiedAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}
