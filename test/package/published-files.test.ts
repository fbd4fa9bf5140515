import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { nodeVersionRemedy } from '../../src/cli/terminal/node-version.js'
import { readSources } from '../architecture/source-tree.js'
import { packOnce, root } from './tarball.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

interface Manifest {
  exports: Record<string, string | { types: string; default: string }>
  bin: Record<string, string>
  sideEffects: boolean
  repository: { url: string }
  homepage: string
  bugs: { url: string }
  keywords: string[]
  engines: { node: string }
  publishConfig: object
}
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
const { exports, bin, sideEffects, repository } = manifest
let tarball: string
let files: string[]
let bytes: number

// Neither npm pack nor the checks need a network; the packed build is the one that all tests run.
beforeAll(() => {
  ;({ path: tarball, files, bytes } = packOnce())
}, 300_000)

function check(program: string, ...args: string[]) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [join(root, 'node_modules', program), ...args], {
    cwd: folder,
    encoding: 'utf8',
  })
  return { status, output: `${stdout}\n${stderr}` }
}

/** The tarball is packed from this folder's files. */
function textOf(path: string): string {
  return readFileSync(join(root, path), 'utf8')
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
    ].map((path) => path.replace('./', ''))
    expect(targets.filter((path) => !files.includes(path))).toEqual([])
    const code =
      /^dist\/([a-z0-9/-]+|(core\/shared|browser)\/[\w-]+)\.(js|mjs|d\.ts|wasm)$|^dist\/console\/([\w-]+\.js|console\.css|(docs|later|operator)-style\.css|app\.webmanifest|icon\.(svg|png)|NOTICE\.txt)$/
    const documents = /^docs\/(http\/)?[a-z-]+\.(md|txt|png)$|^[A-Z]+\.md$|^LICENSE$|^llms\.txt$/
    const models = /^models\/(embedded\/(model\.onnx|model\.json|README\.md)|basic-pitch\/(nmp\.onnx|LICENSE|NOTICE))$/
    const rest = /^examples\/([a-z]+\/)?[A-Za-z-]+(\.(mjs|js|html|py|yaml|json))?$|^package\.json$/
    expect(files.filter((path) => ![code, documents, models, rest].some((pattern) => pattern.test(path)))).toEqual([])
    expect(files.filter((path) => path.includes('.test.'))).toEqual([])
    const texts = files.filter((path) => /\.(js|ts|md|mjs|json)$/.test(path))
    expect(texts.filter((path) => textOf(path).includes('sourceMappingURL=') || textOf(path).includes(root))).toEqual(
      [],
    )
  })

  test('is small: limits for its bytes and its files', () => {
    // The WebAssembly runtime takes 3.7 MB of the tarball, the models 2.4 MB.
    expect(bytes).toBeLessThan(7_000_000)
    expect(files.length).toBeLessThan(1_250)
  })

  test('has every declaration that those of its subpaths lead to', () => {
    const entries = Object.values(exports).flatMap((target) => (typeof target === 'string' ? [] : [target.types]))
    const reached = new Set<string>()
    const waiting = entries.map((path) => path.replace('./', ''))
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      if (reached.has(path)) continue
      reached.add(path)
      // Examples in comments import the reader's own files.
      const declarations = textOf(path).replace(/\/\*[^]*?\*\//g, '')
      for (const [, target = ''] of declarations.matchAll(/(?:from|import\()\s*['"](\.[^'"]+)['"]/g))
        waiting.push(posix.join(posix.dirname(path), target.replace(/\.js$/, '.d.ts')))
    }
    expect(reached.size).toBeGreaterThan(50)
    expect([...reached].filter((path) => !files.includes(path))).toEqual([])
  })

  test('has every page, picture and example that its pages link to', () => {
    const { url } = repository
    const own = url.replace(/^git\+/, '').replace(/\.git$/, '')
    const missing = files
      .filter((path) => path.endsWith('.md'))
      .flatMap((page) =>
        Array.from(textOf(page).matchAll(/\]\(([^)#\s]+)/g), ([, link = '']) => {
          // The page on npm loads files that are not in the tarball from GitHub.
          const raw = own.replace('github.com', 'raw.githubusercontent.com')
          if (link.startsWith(raw)) {
            const path = link.slice(raw.length).replace(/^\/main\//, '')
            return existsSync(join(root, path)) ? [] : [`${page}: ${link}`]
          }
          if (link.startsWith(own)) {
            const path = link.slice(own.length).replace(/^\/(?:blob|tree)\/main\//, '')
            return existsSync(join(root, path)) ? [] : [`${page}: ${link}`]
          }
          if (/^(https?|mailto):/.test(link)) return []
          const path = posix.join(posix.dirname(page), link)
          const found = files.some((file) => file === path || file.startsWith(path.replace(/\/?$/, '/')))
          return found ? [] : [`${page}: ${link}`]
        }).flat(),
      )
    expect(missing).toEqual([])
  })

  test('says on npm where it comes from, and is published from there with provenance', () => {
    const own = repository.url.replace(/^git\+/, '').replace(/\.git$/, '')
    expect(own).toMatch(/^https:\/\/github\.com\//)
    expect(manifest).toMatchObject({
      homepage: `${own}#readme`,
      bugs: { url: `${own}/issues` },
      publishConfig: { access: 'public', provenance: true },
    })
    expect(manifest.keywords.length).toBeGreaterThan(4)
    // npm writes the statement only for a workflow that may request its own token.
    const release = textOf('.github/workflows/release.yml')
    expect(release).toContain('id-token: write')
    expect(release).toMatch(/run: npm publish\n/)
  })

  test('names the same versions of Node for npm, for its users, and in what its programs say', () => {
    const { node } = manifest.engines
    expect(node).toBe('^20.19.0 || >=22.12.0')
    for (const page of ['README.md', 'docs/getting-started.md', 'docs/installation.md'])
      expect(textOf(page)).toMatch(/[Nn]eed Node 20\.19\+ or 22\.12\+/)
    for (const version of ['20.19.0', '22.12.0', '23.0.0', '24.1.0']) expect(nodeVersionRemedy(version)).toBeUndefined()
    for (const version of ['18.20.8', '20.18.3', '21.7.3', '22.11.0'])
      expect(nodeVersionRemedy(version)).toContain('Node 20.19+ or 22.12+')
  })

  test('is tested by the whole suite on every line of Node that it says it runs on', () => {
    const [, whole = ''] = /^  full:\n([\s\S]*?)^  \w+:$/m.exec(textOf('.github/workflows/ci.yml')) ?? []
    expect(whole).toContain('run: bash .ci/run')
    const [, tested = ''] = /node: \[([\d, ]+)\]/.exec(whole) ?? []
    const [, said = ''] = /the complete test suite runs on ([\d, and]+)\./.exec(textOf('docs/platforms.md')) ?? []
    expect(tested.match(/\d+/g)).toEqual(['20', '22', '24', '26'])
    expect(said.match(/\d+/g)).toEqual(tested.match(/\d+/g))
  })

  test('has every script that is loaded by its address', () => {
    const named = [...readSources()].flatMap(([, text]) =>
      [...text.matchAll(/\b(?:scriptFile|installedScript)\(['`]([^'`]+)/g)].map(([, path]) => `dist/${path}`),
    )
    expect(named.length).toBeGreaterThan(12)
    expect(named.filter((name) => !files.includes(name))).toEqual([])
  })

  test('says that no module has side effects, and none imports a package for its effects alone', () => {
    expect(sideEffects).toBe(false)
    const scripts = files.filter((path) => path.startsWith('dist/') && path.endsWith('.js'))
    expect(scripts.length).toBeGreaterThan(200)
    expect(scripts.filter((path) => /^import ["'](?!\.)/m.test(textOf(path)))).toEqual([])
  })
})
