// Prints the size of the project: node scripts/figures.mjs [--install]. Run "npm run build" first. With --install also
// what "npm install" of the packed tarball brings into an empty project, which needs the registry; more than the limits
// below is an error.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { limits } from './limits.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'stemwork-figures-'))
try {
  for (const [name, value] of figures()) console.log(`${name.padEnd(28)} ${value}`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function* figures() {
  const sources = filesOf(join(root, 'src')).filter((path) => /\.tsx?$/.test(path))
  const lengths = sources.map((path) => ({ path, lines: readFileSync(path, 'utf8').split('\n').length - 1 }))
  lengths.sort((a, b) => b.lines - a.lines)
  yield ['source files', sources.length]
  yield ['source lines', lengths.reduce((sum, { lines }) => sum + lines, 0)]
  yield ['longest file', `${lengths[0].lines} lines, ${lengths[0].path.slice(root.length)}`]

  const times = Array.from({ length: 5 }, importMs).sort((a, b) => a - b)
  yield ["import 'stemwork'", `${times[2]} ms (median of ${times.join(', ')})`]

  const modules = importedModules()
  checkLimit('importedModules', modules)
  yield ['modules of the import', modules]

  const packed = JSON.parse(run(`npm pack --json --ignore-scripts --pack-destination "${folder}"`, root))
  const { filename, size, unpackedSize, entryCount } = Object.values(packed)[0]
  checkLimit('tarballBytes', size)
  yield ['tarball', `${megabytes(size)}, unpacked ${megabytes(unpackedSize)}, ${entryCount} files`]

  if (!process.argv.includes('--install')) return
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  run(`npm install --no-audit --no-fund "${join(folder, filename)}"`, folder)
  const installed = join(folder, 'node_modules')
  const bytes = filesOf(installed).reduce((sum, path) => sum + statSync(path).size, 0)
  const { packages } = JSON.parse(readFileSync(join(installed, '.package-lock.json'), 'utf8'))
  checkLimit('installedBytes', bytes)
  checkLimit('installedPackages', Object.keys(packages).length)
  yield ['npm install', `${megabytes(bytes)} in ${Object.keys(packages).length} packages`]
}

/** In a process of its own, by that process's clock: the start of Node does not count. */
function importMs() {
  const code = "const began = performance.now(); await import('stemwork'); console.log(performance.now() - began)"
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
    cwd: root,
    encoding: 'utf8',
  })
  return Math.round(Number(stdout))
}

/** Files that a new process loads for `import 'stemwork'`. */
function importedModules() {
  const record = new URL('../test/package/fixtures/record-loads.mjs', import.meta.url).href
  const code = "await import('stemwork'); console.log(globalThis.loadedFiles().length)"
  const { stdout } = spawnSync(process.execPath, ['--import', record, '--input-type=module', '--eval', code], {
    cwd: root,
    encoding: 'utf8',
  })
  return Number(stdout)
}

function checkLimit(name, value) {
  if (value <= limits[name]) return
  console.error(`${name}: ${value}, and the limit is ${limits[name]}. Make it smaller, or say in the change why not.`)
  process.exitCode = 1
}

function filesOf(path) {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

function run(command, cwd) {
  // The shell finds npm.cmd on Windows.
  const { stdout, stderr, status } = spawnSync(command, { cwd, encoding: 'utf8', shell: true })
  if (status !== 0) throw new Error(`${command} failed: ${stderr}`)
  return stdout
}

function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
