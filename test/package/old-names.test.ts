import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'

// `test/types` tests the compiler's messages about old names.
const root = fileURLToPath(new URL('../..', import.meta.url))
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, { default: string }>
}
const api = readFileSync(join(root, 'docs/api.txt'), 'utf8')
const oldNames = Array.from(
  api.matchAll(/^stemwork(\S*): (\w+) is (.+)$/gm),
  ([, subpath = '', name = '', now = '']) => ({
    subpath,
    name,
    now,
  }),
)

async function moduleOf(subpath: string): Promise<Record<string, unknown>> {
  const { default: file } = exports[`.${subpath}`]!
  return (await import(pathToFileURL(join(root, file)).href)) as Record<string, unknown>
}

/** The declarations of a subpath, from the report of the public API. */
function declared(subpath: string): string {
  const section = api.split(/^== /m).find((text) => text.startsWith(`${subpath}\n`)) ?? ''
  return section
}

describe('an old name', () => {
  test.each(oldNames)('$name of stemwork$subpath leads to the new name: $now', async ({ subpath, name, now }) => {
    const [, moved = name, place] = /^(?:(\w+)|the type of this name) of '(stemwork\/\w+)'$/.exec(now) ?? []
    if (place !== undefined) expect(declared(place)).toMatch(new RegExp(`^(function|interface|type) ${moved}\\b`, 'm'))
    const value = (await moduleOf(subpath))[name]
    if (typeof value !== 'function') return
    expect(() => value()).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTIONS', message: `${name} was renamed. Use ${now}.` }),
    )
  })

  test('is recognized as one wherever it is exported', async () => {
    const functions = oldNames.filter(({ name }) => /^[a-z]/.test(name))
    expect(functions.length).toBeGreaterThan(10)
    for (const { subpath, name } of functions) expect(await moduleOf(subpath), name).toHaveProperty(name)
  })
})
