import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const fixture = (name: string) => new URL(`./fixtures/${name}`, import.meta.url)

/** Output of a new Node.js process, which can list the files that it has loaded. */
function run(...args: string[]): string {
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--import', fixture('record-loads.mjs').href, ...args],
    { encoding: 'utf8', cwd: fileURLToPath(new URL('../..', import.meta.url)) },
  )
  expect(status, stderr).toBe(0)
  return stdout
}

function filesLoadedBy(...specifiers: string[]): string[] {
  const imports = specifiers.map((specifier) => `await import('${specifier}')`).join('\n')
  return JSON.parse(
    run('--input-type=module', '--eval', `${imports}\nconsole.log(JSON.stringify(globalThis.loadedFiles()))`),
  ) as string[]
}

/** Names of the packages among `files`. */
function packagesOf(files: readonly string[]): string[] {
  const names = files.map((file) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file.replaceAll('\\', '/'))?.[1])
  return [...new Set(names.filter((name) => name !== undefined))].sort()
}

/** Sources of the published `files`: `build/core/...`, named `core/...` in the comments of bundles. */
function sourcesOf(files: readonly string[]): string[] {
  const published = files.filter(
    (file) => /\/dist\/.*\.js$/.test(file.replaceAll('\\', '/')) && !file.includes('node_modules'),
  )
  return published.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/^\/\/ (\w\S*\.js)$/gm)].map(([, name]) => `build/${name}`),
  )
}

/** Folders of `src/core` that do the work, none of which is needed to declare a workflow. */
function workingParts(files: readonly string[]): string[] {
  const part =
    /build\/core\/(media\/(?:decode\/(?!file-extensions)|dsp)|models\/(?!stems|ensemble-algorithm|session\/(?:execution-provider|runtime)\.js)|workflows\/separation\/(?:architectures|evaluation|pipeline))/
  return sourcesOf(files).filter((name) => part.test(name))
}

const needed = ['eventemitter3', 'p-queue', 'p-timeout', 'zod']
const { limits } = (await import(new URL('../../scripts/limits.mjs', import.meta.url).href)) as {
  limits: { importedModules: number }
}

describe('what is loaded', () => {
  test("by import 'stemwork' is the engine and four packages, in no more files than scripts/limits.mjs allows", () => {
    const files = filesLoadedBy('stemwork')
    expect(sourcesOf(files).length).toBeGreaterThan(100)
    expect(files.length).toBeLessThanOrEqual(limits.importedModules)
    expect(packagesOf(files)).toEqual(needed)
    expect(workingParts(files)).toEqual([])
  })

  test('is noticed by these tests', () => {
    const files = filesLoadedBy('stemwork/sqlite', 'stemwork/models', 'onnxruntime-node', 'audio-decode')
    expect(packagesOf(files)).toEqual(expect.arrayContaining(['libsql', 'onnxruntime-node', 'audio-decode']))
    // Including the native part of a package, which require() loads.
    expect(files.some((file) => file.endsWith('.node'))).toBe(true)
    expect(workingParts(files)).not.toEqual([])
  })

  for (const [runner, ownProcess] of [
    ['inline', true],
    ['process', false],
  ] as const) {
    test(`for a job of a host with only its own workflow is no more: ${runner} runner`, () => {
      const report = JSON.parse(run(fileURLToPath(fixture('host.mjs')), runner)) as {
        ownProcess: boolean
        host: string[]
        run: string[]
      }
      expect(report.ownProcess).toBe(ownProcess)
      for (const files of [report.host, report.run]) {
        expect(packagesOf(files)).toEqual(needed)
        expect(workingParts(files)).toEqual([])
      }
    })
  }

  test('by a started engine includes all that its jobs and webhooks need', () => {
    expect(JSON.parse(run(fileURLToPath(fixture('late-loads.mjs'))))).toEqual({ status: 'SUCCEEDED', late: [] })
  })

  test("for traces by 'stemwork/opentelemetry' is its API alone, which starts nothing", () => {
    expect(packagesOf(filesLoadedBy('stemwork/opentelemetry'))).toEqual(['@opentelemetry/api'])
  })

  test('by an adapter outside the package and its tests is what checks records, and nothing of other adapters', () => {
    const files = filesLoadedBy('stemwork/adapter', 'stemwork/contract')
    expect(packagesOf(files)).toEqual(['zod'])
    expect(sourcesOf(files).filter((name) => /^build\/adapters\/\w+\/(?!shared\/)/.test(name))).toEqual([])
  })

  test('adds nothing to globals but functions of Reflect, and entries of zod and srvx', () => {
    // Node.js adds one of its own at the first use of Request.
    const code = `void Request
      const keys = () => [globalThis, Reflect].flatMap((one) => Reflect.ownKeys(one).map(String))
      const before = keys()
      const { createEngine } = await import('stemwork')
      const { createHandler } = await import('stemwork/http')
      createHandler(createEngine())
      console.log(JSON.stringify(keys().filter((key) => !before.includes(key))))`
    const added = JSON.parse(run('--input-type=module', '--eval', code)) as string[]
    expect(added.filter((key) => !/zod|srvx|[mM]etadata|^decorate$/.test(key))).toEqual([])
    expect(added).toEqual(expect.arrayContaining(['decorate', '__zod_globalRegistry', 'Symbol(srvx.nativeRequest)']))
  })

  test('in a browser with stemwork/client includes no other package', () => {
    expect(packagesOf(filesLoadedBy('stemwork/client'))).toEqual([])
  })
})
