// Prepares a fresh clone: installs the packages of package-lock.json and builds `build` and `dist`, each only when out
// of date. With "--code", without type declarations, which take two thirds of the build's time. Plain Node without
// dependencies, because it runs before anything is installed.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const [major, minor] = process.versions.node.split('.').map(Number)
// Older versions cannot require() ES modules, which hosts in CommonJS do.
if (major < 20 || major === 21 || (major === 20 && minor < 19) || (major === 22 && minor < 12)) {
  fail(
    `stemwork needs Node 20.19, 22.12 or newer; this is ${process.versions.node}. Install one of those, then run ` +
      'the command again.',
  )
}

if (!packagesAreCurrent()) {
  console.error('Installing packages (npm ci), which takes about a minute ...')
  // For npm versions that ignore .npmrc and allowScripts: the install script would download GPU libraries.
  const status = run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { ONNXRUNTIME_NODE_INSTALL: 'skip' })
  if (status !== 0)
    fail(
      `npm ci failed (exit status ${status}); the lines above say why. It needs an npm registry that answers; "npm ` +
        'config get registry" names yours.',
    )
}
const inputs = [
  'models/embedded/model.json',
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'tsconfig.browser.json',
  'tsconfig.console.json',
  'tsup.browser.config.ts',
  'tsup.config.ts',
  'scripts/build-kernels.mjs',
  'scripts/bundle.mjs',
  'scripts/copy-wasm.mjs',
  'scripts/prune-declarations.mjs',
  ...sources('src'),
]
if (!existsSync(join(root, 'build'))) rmSync(join(root, 'dist', '.stemwork-built'), { force: true })
step('dist', '.stemwork-built', inputs, () => {
  console.error('Building ...')
  // `build:code` removes the declarations.
  rmSync(join(root, 'dist', '.stemwork-typed'), { force: true })
  return run('npm', ['run', '--silent', 'build:code'])
})
if (!process.argv.includes('--code')) {
  step('dist', '.stemwork-typed', inputs, () => run('npm', ['run', '--silent', 'build:types'], { GOGC: 'off' }))
}

/**
 * npm ends an install by writing a second lock file into `node_modules`, which lacks the optional packages of other
 * platforms.
 */
function packagesAreCurrent() {
  const installedPath = join(root, 'node_modules', '.package-lock.json')
  if (!existsSync(installedPath)) return false
  const { packages: wanted } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const { packages: installed } = JSON.parse(readFileSync(installedPath, 'utf8'))
  return Object.entries(wanted).every(
    ([path, { version, optional }]) =>
      path === '' || (installed[path] ? installed[path].version === version : optional === true),
  )
}

/** Does `work` unless `folder/stamp` records that it was done for exactly these files. */
function step(folder, stamp, files, work) {
  const hash = createHash('sha256').update(process.versions.modules)
  for (const file of files) hash.update(`\0${file}\0`).update(readFileSync(join(root, file)))
  const state = hash.digest('hex')
  const path = join(root, folder, stamp)
  if (existsSync(path) && readFileSync(path, 'utf8') === state) return
  const status = work()
  if (status !== 0) fail(`Setting up ${folder} failed (exit status ${status}). The lines above say why.`)
  writeFileSync(path, state)
}

function sources(folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
    .sort()
}

function run(command, args, environment = {}) {
  // With a shell, Windows finds npm.cmd.
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
    env: { ...process.env, ...environment },
  })
  if (error) fail(`${command} could not be started: ${error.message}`)
  return status
}

function fail(message) {
  console.error(message)
  process.exit(1)
}
