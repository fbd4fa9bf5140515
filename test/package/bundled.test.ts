import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { build as esbuild, type Format } from 'esbuild'
import { beforeAll, describe, expect, test } from 'vitest'
import { build as vite } from 'vite'
import { packOnce, root, unpackInto } from './tarball.js'
import { temporaryFolder } from '../temporary-folder.js'

// `test/platforms` tests the other bundlers, with packages from a registry.
const folder = temporaryFolder()

beforeAll(() => {
  // Of the optional peers, only the faster runtime: a lazy import must not stop a bundler.
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: object }
  unpackInto(folder, packOnce(), [...Object.keys(dependencies), 'onnxruntime-node'])
  for (const name of ['separation.mjs', 'service.mjs'])
    copyFileSync(join(root, 'test/package/fixtures', name), join(folder, name))
})

/** Bundles a program with esbuild into `file`, in a folder below the project's. */
async function withEsbuild(program: string, file: string, format: Format, external: string[]) {
  const outfile = join(folder, 'dist', file)
  const settings = { bundle: true, platform: 'node', logLevel: 'silent', absWorkingDir: folder } as const
  await esbuild({ ...settings, entryPoints: [program], format, external, outfile })
  return outfile
}

/** Bundles the program with Vite, for a server; `external` is Rollup's option, which names modules, not packages. */
async function withVite(program: string, file: string, external: string[]) {
  const outfile = join(folder, 'dist', file)
  const output = { entryFileNames: '[name].mjs' }
  await vite({
    root: folder,
    configFile: false,
    logLevel: 'silent',
    build: { ssr: program, outDir: dirname(outfile), rollupOptions: { external, output } },
    ssr: { noExternal: true },
  })
  return outfile
}

function run(file: string) {
  return spawnSync(process.execPath, [file], { cwd: folder, encoding: 'utf8' })
}

describe('a program in a bundle', () => {
  for (const [file, format] of [
    ['server.mjs', 'esm'],
    ['server.cjs', 'cjs'],
  ] as const) {
    test(`separates a song if stemwork was left out of the bundle (${format})`, async () => {
      const { stdout, stderr } = run(await withEsbuild('separation.mjs', file, format, ['stemwork']))
      expect(stdout, stderr).toBe('SUCCEEDED vocals accompaniments\n')
    })
  }

  // `main.js` beside the bundle's code would be the bundle itself, which would start itself as a child without end.
  const main = (format: Format) => `${format}/main.${format === 'esm' ? 'js' : 'cjs'}`
  const mistakes: [string, () => Promise<string>][] = [
    ...(['esm', 'cjs'] as const).flatMap((format): [string, () => Promise<string>][] => [
      [`esbuild, ${format}`, () => withEsbuild('separation.mjs', main(format), format, [])],
      [`esbuild, ${format}, with the service`, () => withEsbuild('service.mjs', `service/${main(format)}`, format, [])],
    ]),
    ['Vite, with the service', () => withVite('service.mjs', 'vite/service.mjs', [])],
    [
      'Vite, which left out stemwork, but not stemwork/http',
      () => withVite('service.mjs', 'half/service.mjs', ['stemwork']),
    ],
  ]
  for (const [name, bundle] of mistakes) {
    test(`says how to leave stemwork out if it was bundled (${name})`, async () => {
      const { stdout, stderr } = run(await bundle())
      expect(stdout, stderr).toBe('')
      expect(stderr).toContain('MISSING_DEPENDENCY')
      expect(stderr).toContain('--external:stemwork')
    })
  }
})

test('a page that Vite builds has the scripts of stemwork/browser as files, which its policy allows', async () => {
  writeFileSync(join(folder, 'page.js'), "import * as browser from 'stemwork/browser'\nglobalThis.browser = browser\n")
  const build = { outDir: 'page', rollupOptions: { input: 'page.js' } }
  await vite({ root: folder, configFile: false, logLevel: 'silent', build })
  const files = readdirSync(join(folder, 'page/assets')).join(' ')
  for (const script of ['worker', 'live-worker', 'live-processor'])
    expect(files).toMatch(new RegExp(`(^| )${script}-[\\w-]+\\.js`))
})

test('each file that a script of stemwork/browser names is there, as Turbopack requires', () => {
  const browser = join(folder, 'node_modules/stemwork/dist/browser')
  const named = readdirSync(browser)
    .filter((file) => file.endsWith('.js'))
    .flatMap((file) => [
      ...readFileSync(join(browser, file), 'utf8').matchAll(/new \w+\("([^"]+)", ?import\.meta\.url\)/g),
    ])
    .map(([, path]) => path ?? '')
  expect(named).toContain('./worker.js')
  expect(named.filter((path) => !existsSync(join(browser, path)))).toEqual([])
})
