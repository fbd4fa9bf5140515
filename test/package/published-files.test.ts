import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readSources } from '../architecture/source-tree.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'stemwork-pack-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const { exports, bin, sideEffects } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, string | { types: string; default: string }>
  bin: Record<string, string>
  sideEffects: string[]
}
let tarball: string
let files: string[]

// Neither npm pack nor the checks need a network; the build that is packed is the one that all tests run.
beforeAll(() => {
  const { stdout, stderr, status } = spawnSync(
    `npm pack --json --ignore-scripts --pack-destination "${folder}"`,
    // The shell finds npm.cmd on Windows.
    { cwd: root, encoding: 'utf8', shell: true },
  )
  expect(status, stderr).toBe(0)
  // npm 12 names each tarball by its package.
  const [packed] = Object.values(JSON.parse(stdout) as Record<string, { filename: string; files: { path: string }[] }>)
  tarball = join(folder, packed?.filename ?? '')
  files = (packed?.files ?? []).map(({ path }) => path)
})

function check(program: string, ...args: string[]) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [join(root, 'node_modules', program), ...args], {
    cwd: folder,
    encoding: 'utf8',
  })
  return { status, output: `${stdout}\n${stderr}` }
}

describe('the packed tarball', () => {
  test('passes publint', () => {
    const { status, output } = check('publint/src/cli.js', '--strict', tarball)
    expect(status, output).toBe(0)
    expect(output).toContain('All good')
  })

  test('has types that every subpath resolves to (are the types wrong, ESM only)', () => {
    const args = ['--profile', 'esm-only', '--format', 'table-flipped', '--no-color', tarball]
    const { status, output } = check('@arethetypeswrong/cli/dist/index.js', ...args)
    expect(status, output).toBe(0)
    for (const subpath of Object.keys(exports)) expect(output).toContain(`stemwork${subpath.slice(1)}`)
  })

  test('has every file that package.json names, and no source, test or setting of this repository', () => {
    const targets = [
      ...Object.values(exports).flatMap((target) => (typeof target === 'string' ? target : Object.values(target))),
      ...Object.values(bin),
      ...sideEffects,
    ].map((path) => path.replace('./', ''))
    expect(targets.filter((path) => !files.includes(path))).toEqual([])
    expect(
      files.filter(
        (path) =>
          !/^(dist|models)\/|^(README|CHANGELOG)\.md$|^LICENSE$|^package\.json$/.test(path) ||
          /\.test\.|\/\./.test(path),
      ),
    ).toEqual([])
  })

  test('names each module as one with side effects that imports another for its effects alone', () => {
    const modules = [...readSources()].filter(([, text]) => /^import '/m.test(text))
    expect(modules.map(([file]) => `./dist/${file.replace(/\.tsx?$/, '.js')}`)).toEqual(sideEffects)
  })
})
