import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { projectProblems } from '../examples/type-problems.js'
import { buildDeclarations } from '../declarations.js'

// `test/types` has one file for each subpath, compiled like the code of a strict host, against the built declarations.
// A wrong use is marked `@ts-expect-error`, which is an error itself once the compiler accepts that use.
const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = join(root, 'test/types')
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, string | { default: string }>
}

buildDeclarations()

describe('the types of the package', () => {
  test('are what users rely on', () => {
    expect(projectProblems(join(folder, 'tsconfig.json'))).toBe('')
  })

  for (const [subpath, target] of Object.entries(exports)) {
    if (typeof target === 'string') continue
    const specifier = `stemwork${subpath.slice(1)}`
    test(`of ${specifier} are used, each of its functions and constants, and at least once wrongly`, async () => {
      const values = Object.keys((await import(join(root, target.default))) as object)
      expect(values.length).toBeGreaterThan(0)
      const text = readFileSync(join(folder, `${subpath === '.' ? 'index' : subpath.slice(2)}.ts`), 'utf8')
      const [, imported = ''] = new RegExp(`import \\{([^}]*)\\} from '${specifier}'`).exec(text) ?? []
      const used = imported.split(',').map((name) => name.trim().replace(/^type | as .*/g, ''))
      expect(values.filter((value) => !used.includes(value))).toEqual([])
      expect(text).toContain('// @ts-expect-error: ')
    })
  }
})
