import { spawnSync } from 'node:child_process'
import { appendFileSync, cpSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from './tarball.js'
import { temporaryFolder } from '../temporary-folder.js'

const copy = temporaryFolder()

/** Does exactly what `npm pack` and `npm publish` do, in a copy of the tree that was never built. */
function pack() {
  const { stdout, stderr, status } = spawnSync('npm pack --json', { cwd: copy, encoding: 'utf8', shell: true })
  return { status, words: stdout + stderr, stdout }
}

test('npm pack builds a tree that was never built, with declarations; without them there is no tarball', () => {
  const settings = readdirSync(root).filter((name) => /^(tsconfig|tsup)\b.*\.(json|ts)$/.test(name))
  for (const name of ['src', 'scripts', 'models', 'package.json', '.npmrc', ...settings])
    cpSync(join(root, name), join(copy, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'), 'junction')

  const packed = pack()
  expect(packed.status, packed.words).toBe(0)
  // The build writes to stdout before npm.
  const json = packed.stdout.slice(packed.stdout.search(/^[[{]$/m))
  const [tarball] = Object.values(JSON.parse(json) as Record<string, { files: { path: string }[] }>)
  const paths = tarball!.files.map(({ path }) => path)
  expect(paths).toEqual(expect.arrayContaining(['dist/index.js', 'dist/index.d.ts', 'dist/http/index.d.ts']))

  // A type error prevents declarations from being written, although the JavaScript can be built.
  appendFileSync(join(copy, 'src/index.ts'), "\nexport const planted: number = 'text'\n")
  const refused = pack()
  expect(refused.status, refused.words).not.toBe(0)
  expect(refused.words).toContain('src/index.ts')
}, 600_000)
