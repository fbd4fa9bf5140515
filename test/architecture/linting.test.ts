import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'stemwork-lint-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

writeFileSync(
  join(folder, 'tsconfig.json'),
  '{"compilerOptions":{"strict":true,"target":"es2022","module":"nodenext"}}',
)

/** The rules of the package's own configuration that `code` breaks. */
function broken(code: string): string[] {
  const file = join(folder, 'planted.ts')
  writeFileSync(file, `declare function save(): Promise<void>\n${code}\nexport {}\n`)
  const { stdout, status } = spawnSync(
    process.execPath,
    [
      join(root, 'node_modules/oxlint/bin/oxlint'),
      '--type-aware',
      '--format=json',
      '--config',
      join(root, '.oxlintrc.json'),
      file,
    ],
    { cwd: folder, encoding: 'utf8' },
  )
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: { code: string }[] }
  expect(status).toBe(diagnostics.length === 0 ? 0 : 1)
  return diagnostics.map(({ code: rule }) => rule)
}

describe('the linter refuses', () => {
  test('a floating promise', () => {
    expect(broken('save()')).toEqual(['typescript(no-floating-promises)'])
  })

  test('a promise in a condition, used as if it were its value', () => {
    expect(broken('[1].forEach(async () => await save())')).toEqual(['typescript(no-misused-promises)'])
    expect(broken('if (save()) await save()')).toEqual(['typescript(no-misused-promises)'])
  })

  test('but neither of them when it is awaited', () => {
    expect(broken('await save()\nfor (const _ of [1]) await save()')).toEqual([])
  })
})
