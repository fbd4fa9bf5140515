import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { madeOnce } from '../made-once.js'
import { buildDeclarations } from '../declarations.js'

export const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Tarball {
  path: string
  /** Paths of the packed files. */
  files: string[]
  bytes: number
}

/** The build that all tests run, packed as by `npm publish`, once for all test files. Needs no network. */
export function packOnce(): Tarball {
  const folder = madeOnce('tarball', (place) => {
    buildDeclarations()
    writeFileSync(
      join(place, 'packed.json'),
      run(`npm pack --json --ignore-scripts --pack-destination "${place}"`, root),
    )
  })
  const told = readFileSync(join(folder, 'packed.json'), 'utf8')
  // npm 12 names each tarball by its package.
  const [packed] = Object.values(
    JSON.parse(told) as Record<string, { filename: string; size: number; files: { path: string }[] }>,
  )
  if (!packed) throw new Error(`npm pack named no tarball: ${told}`)
  return { path: join(folder, packed.filename), files: packed.files.map(({ path }) => path), bytes: packed.size }
}

/**
 * Unpacks the tarball into a project, like an install, beside packages of this repository: all packages, or the named
 * ones. Needs no network.
 */
export function unpackInto(
  project: string,
  tarball: Tarball,
  packages = readdirSync(join(root, 'node_modules')).filter((name) => !name.startsWith('.')),
): void {
  const modules = join(project, 'node_modules')
  mkdirSync(modules)
  run(`tar -xzf "${tarball.path}" -C "${modules}"`, project)
  renameSync(join(modules, 'package'), join(modules, 'stemwork'))
  for (const name of packages) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(modules, name), 'junction')
  }
}

/** Runs the command in the shell, which finds npm.cmd on Windows. */
function run(command: string, cwd: string): string {
  const { stdout, stderr, status } = spawnSync(command, { cwd, encoding: 'utf8', shell: true })
  if (status !== 0) throw new Error(`${command} failed: ${stderr}`)
  return stdout
}
