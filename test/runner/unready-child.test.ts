import { spawnSync } from 'node:child_process'
import { cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import type { EngineHealth } from '../../src/core/engine/engine.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import type { RuntimeChoice } from '../../src/core/models/session/runtime.js'
import { temporaryFolder } from '../temporary-folder.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const runtime = join(root, 'node_modules/onnxruntime-node')
/** A project with the package installed as by npm, its dependencies linked, and without onnxruntime-node. */
const project = temporaryFolder()
let modules: string

beforeAll(async () => {
  modules = join(project, 'node_modules')
  await mkdir(join(modules, 'stemwork'), { recursive: true })
  await cp(join(root, 'dist'), join(modules, 'stemwork/dist'), { recursive: true })
  await cp(join(root, 'package.json'), join(modules, 'stemwork/package.json'))
  await symlink(join(root, 'models'), join(modules, 'stemwork/models'))
  const { dependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  for (const name of Object.keys(dependencies)) {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(root, 'node_modules', name), join(modules, name))
  }
  await cp(fileURLToPath(new URL('./fixtures/stems-host.mjs', import.meta.url)), join(project, 'host.mjs'))
  await writeFile(join(project, 'package.json'), '{"type":"module"}')
}, 120_000)

type Refusal = { code: string; message: string; retryable: boolean; cause: string }

interface Seen {
  healthBefore: EngineHealth
  start: 'ok' | Refusal
  waiting: string
  done?: JobRecord
  later?: 'ok' | Refusal
  health: EngineHealth
}

function host(runtime: RuntimeChoice, file = 'host.mjs'): Seen {
  const { stdout, stderr, status } = spawnSync(process.execPath, [join(project, file)], {
    encoding: 'utf8',
    timeout: 60_000,
    env: { ...process.env, STEMWORK_RUNTIME: runtime },
  })
  expect(stderr).toBe('')
  expect(status).toBe(0)
  return JSON.parse(stdout) as Seen
}

const ready = { start: 'ok', healthBefore: { ok: true, problems: [] }, health: { ok: true } }

/**
 * Expects that the start and later jobs are refused with the remedy, and that a job created before, which is still
 * run, ends at once and is not retried.
 */
function expectRefusal(seen: Seen, code: string, remedy: string): void {
  expect(seen.start).toMatchObject({ code, retryable: false, message: expect.stringContaining(remedy) })
  expect(seen.waiting).toBe('QUEUED')
  for (const health of [seen.healthBefore, seen.health]) {
    expect(health.ok).toBe(false)
    expect(health.problems).toEqual([expect.stringContaining(remedy)])
    expect(health.problems[0]).not.toContain(project)
  }
  expect(seen.done).toMatchObject({
    status: 'FAILED',
    attempts: 1,
    error: { code: 'INTERNAL_ERROR', retryable: false, message: expect.stringContaining('not set up') },
    failure: expect.stringContaining(code),
  })
  expect(JSON.stringify(seen.done?.error)).not.toContain(project)
  expect(seen.later).toMatchObject({ code: 'WORKFLOW_UNAVAILABLE', message: expect.stringContaining(remedy) })
}

describe('a host whose child process cannot work is told so when it starts', () => {
  test('because onnxruntime-node, the chosen runtime, is not installed', () => {
    const seen = host('native')
    expectRefusal(seen, 'MISSING_DEPENDENCY', 'Install it: npm install onnxruntime-node')
    expect(seen.done?.failure).toContain('ERR_MODULE_NOT_FOUND')
  })

  test('because the native library of onnxruntime-node is damaged', async () => {
    const copy = join(modules, 'onnxruntime-node')
    const { version } = JSON.parse(await readFile(join(runtime, 'package.json'), 'utf8')) as { version: string }
    await cp(join(runtime, 'dist'), join(copy, 'dist'), { recursive: true })
    await cp(join(runtime, 'package.json'), join(copy, 'package.json'))
    await symlink(join(root, 'node_modules/onnxruntime-common'), join(modules, 'onnxruntime-common'))
    for (const napi of ['napi-v3', 'napi-v6']) {
      const folder = join(copy, 'bin', napi, process.platform, process.arch)
      await mkdir(folder, { recursive: true })
      await writeFile(join(folder, 'onnxruntime_binding.node'), `not a library of ${version}`)
    }
    expect(host('auto')).toMatchObject(ready)
    const seen = host('native')
    expectRefusal(seen, 'MISSING_DEPENDENCY', 'native library cannot be loaded')
    expect(seen.done?.failure).toMatch(/onnxruntime_binding\.node/)
    await rm(copy, { recursive: true })
  })

  test('and is ready on WebAssembly without the package, or with it', async () => {
    expect(host('auto')).toMatchObject(ready)
    await symlink(runtime, join(modules, 'onnxruntime-node'))
    expect(host('native')).toMatchObject(ready)
  })

  test("because the child's program is not beside the code", async () => {
    await rm(join(modules, 'stemwork/dist/core/engine/runner/main.js'))
    expectRefusal(host('auto'), 'MISSING_DEPENDENCY', 'Keep the package out of the bundle')
  })
})
