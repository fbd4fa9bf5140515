// Compiles the kernels of src/core/media/dsp/kernels/assembly (AssemblyScript) to one module beside the compiled
// TypeScript: a few kilobytes in base64, which every platform can import.
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import asc from 'assemblyscript/asc'

const root = fileURLToPath(new URL('..', import.meta.url))
const kernels = 'core/media/dsp/kernels'
const assembly = `src/${kernels}/assembly`
const output = join(root, 'build', kernels, 'compiled-kernels.js')

/** Files in the folder of parts are not kernels. */
const sources = readdirSync(join(root, assembly), { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.ts'),
)
const compiler = fileURLToPath(import.meta.resolve('assemblyscript/asc'))
const inputs = [fileURLToPath(import.meta.url), compiler, ...sources.map((file) => join(root, assembly, file))]
// A folder's modification time changes when a file is added or removed.
if (modifiedAt(output) <= Math.max(...[...inputs, join(root, assembly)].map(modifiedAt))) {
  const compiled = {}
  for (const source of sources.filter((file) => dirname(file) === '.').sort())
    compiled[basename(source, '.ts')] = Buffer.from(await compile(`${assembly}/${source}`)).toString('base64')
  writeFileSync(output, `export const compiledKernels = ${JSON.stringify(compiled, null, 2)}\n`)
}

async function compile(source) {
  let binary
  const { error } = await asc.main(
    [
      source,
      '--outFile',
      'kernel.wasm',
      '--baseDir',
      root,
      '-O3',
      // No runtime: the kernels allocate nothing and work on the memory given to their instance.
      '--enable',
      'simd',
      '--runtime',
      'stub',
      '--importMemory',
      '--noExportMemory',
    ],
    { stdout: process.stdout, stderr: process.stderr, writeFile: (_, content) => void (binary = content) },
  )
  if (!error) return binary
  console.error(`The kernel ${source} could not be compiled; the lines above say why.`)
  return process.exit(1)
}

/** Modification time in milliseconds; 0 if there is no such file. */
function modifiedAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}
