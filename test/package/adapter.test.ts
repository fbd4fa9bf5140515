import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { splitScript, walkSnippets } from '../examples/snippets.js'
import { leftLines } from '../examples/stand-ins.js'
import { typeProblems } from '../examples/type-problems.js'
import { packOnce, root, unpackInto } from './tarball.js'

// Follows the page on adapters like a stranger: in an empty folder, with only the tarball and its dependencies.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 300_000 })

const folder = mkdtempSync(join(tmpdir(), 'stemwork-adapter-'))
const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>
}
const written: string[] = []
let output = ''

beforeAll(() => {
  // Only for the compiler of a TypeScript project.
  unpackInto(folder, packOnce(), [...Object.keys(dependencies), '@types'])
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  for (const { language, code } of walkSnippets()) {
    if (language === 'js') {
      const [, name = ''] = /^\/\/ ([\w-]+\.mjs): /.exec(code) ?? []
      writeFileSync(join(folder, name), code)
      written.push(name)
    } else output += run(splitScript(code, leftLines).script)
  }
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function run(script: string): string {
  const { stdout, stderr, status } = spawnSync('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: folder,
    encoding: 'utf8',
    // Node's test runner reports differently inside the process of another runner.
    env: Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(VITEST|NODE_TEST_CONTEXT|NODE_OPTIONS)/.test(name)),
    ),
  })
  if (status !== 0) throw new Error(`${script} failed: ${stdout.slice(-5000)}\n${stderr}`)
  return stdout
}

/** Figures of each run of Node's test runner so far. */
function figures(name: string): number[] {
  return Array.from(output.matchAll(new RegExp(`^(?:#|\\u2139) ${name} (\\d+)$`, 'gm')), ([, count]) => Number(count))
}

test('the stores that the page writes pass every case of their suites, with the packed tarball', () => {
  const [blobs = 0, jobs = 0, ...others] = figures('pass')
  expect(others).toEqual([])
  expect(blobs).toBeGreaterThan(30)
  expect(jobs).toBeGreaterThan(100)
  for (const name of ['fail', 'skipped', 'cancelled', 'todo']) expect(figures(name)).toEqual([0, 0])
})

test('an engine runs on them', () => {
  expect(output).toMatch(/ok: true/)
})

test('the application store of the example passes every case, too', () => {
  output = run('cp node_modules/stemwork/examples/stores/applications*.mjs . && node --test applications-contract.mjs')
  expect(figures('pass')[0]).toBeGreaterThan(5)
  expect(figures('fail')).toEqual([0])
})

test('the page shows the files of the example as they are', () => {
  const shown = written.filter((name) => name !== 'main.mjs')
  expect(shown).toContain('blobs.mjs')
  for (const name of shown)
    expect(readFileSync(join(folder, name), 'utf8'), name).toBe(
      readFileSync(join(folder, 'node_modules/stemwork/examples/stores', name), 'utf8'),
    )
})

test('the code of the page and the example match the types of the package', () => {
  const copied = ['state', 'creating', 'reading', 'sweeping', 'documents', 'journal', 'applications']
  const names = [...written, ...copied.map((name) => `${name}.mjs`)]
  expect(
    typeProblems(
      folder,
      names.map((name) => join(folder, name)),
    ),
  ).toBe('')
})
