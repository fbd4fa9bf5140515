import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const scripts = ['demo', 'benchmarks', 'scripts', 'training'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.mjs'))
    .map((path) => join(folder, path)),
)
const fromBuild = /(?:import|const)\s*\{([^}]*)\}\s*(?:from|= await import\()\s*'(\.[^']*\/(?:build|dist)\/[^']*)'/g

// The compiler does not read these scripts, and few of them run in CI.
test('the demo, the benchmarks and other scripts import nothing that the build does not export', async () => {
  const missing: string[] = []
  let count = 0
  for (const script of scripts)
    for (const [, names = '', path = ''] of readFileSync(join(root, script), 'utf8').matchAll(fromBuild)) {
      const found = (await import(pathToFileURL(resolve(root, dirname(script), path)).href)) as object
      const wanted = names.split(',').map((name) => name.trim().split(/\s|:/)[0] ?? '')
      missing.push(...wanted.filter((name) => name !== '' && !(name in found)).map((name) => `${script}: ${name}`))
      count++
    }
  expect(missing).toEqual([])
  expect(count).toBeGreaterThan(100)
})
