// Removes the declarations in dist that no subpath of the package reaches: nobody can import them. The others become
// readable for TypeScript 5.4.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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

const generic = 'Float32Array<ArrayBuffer>'
const dist = join(root, 'dist')
for (const name of readdirSync(dist, { recursive: true })) {
  const path = join(dist, name)
  if (!name.endsWith('.d.ts')) continue
  if (!reached.has(path)) rmSync(path)
  // Typed arrays are generic from TypeScript 5.7 on. Older versions read this as `Float32Array`.
  else writeFileSync(path, readFileSync(path, 'utf8').replaceAll(generic, "ReturnType<Float32ArrayConstructor['of']>"))
}
