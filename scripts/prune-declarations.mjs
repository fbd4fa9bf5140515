// Removes the declarations in dist that no subpath of the package reaches: nobody can import them.
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

const reached = new Set()
const waiting = Object.values(exports).flatMap(({ types }) => (types ? [resolve(root, types)] : []))
for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
  if (reached.has(path)) continue
  reached.add(path)
  // Imports in examples within comments name the reader's own files.
  const declarations = readFileSync(path, 'utf8').replace(/\/\*[^]*?\*\//g, '')
  for (const [, target] of declarations.matchAll(/(?:from|import\()\s*['"](\.[^'"]+)['"]/g))
    waiting.push(resolve(dirname(path), target.replace(/\.js$/, '.d.ts')))
}

const dist = join(root, 'dist')
for (const name of readdirSync(dist, { recursive: true })) {
  const path = join(dist, name)
  if (name.endsWith('.d.ts') && !reached.has(path)) rmSync(path)
}
