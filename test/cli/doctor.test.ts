import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { memoryBlobs, memoryJobs } from '../../src/adapters/memory.js'
import { blobs, examine, type Finding, folder, jobStore, nodeVersion } from '../../src/cli/commands/doctor-checks.js'
import { command, stemwork } from './stemwork.js'
import { folderOfEachTest } from '../temporary-folder.js'

// Each call loads a network in a separate process.
vi.setConfig({ testTimeout: 180_000 })

const place = folderOfEachTest()

async function doctor(...words: string[]) {
  const { status, stdout, stderr } = await command(['doctor', '--json', ...words])
  expect(stderr).toBe('')
  const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: Finding[] }
  return { status, ok, found: Object.fromEntries(findings.map(({ check, ...finding }) => [check, finding])) }
}

describe('stemwork doctor', () => {
  test('finds no problem on a machine that can serve, and leaves no job and no file behind', async () => {
    const data = join(place, 'data')
    const { status, ok, found } = await doctor('--data', data)
    expect(found).toMatchObject({
      node: { status: 'ok' },
      separation: { status: 'ok', found: expect.stringMatching(/model embedded \(licence: .+\)/) },
      onnxruntime: { status: 'ok', found: expect.stringContaining('cpu') },
      'data folder': { status: 'ok' },
      'job store': { status: 'ok' },
      queue: { status: 'ok' },
      blobs: { status: 'ok' },
      'link secret': { status: 'ok' },
    })
    expect({ status, ok }).toEqual({ status: 0, ok: true })
    expect((await readdir(data)).filter((name) => !name.startsWith('stemwork.db'))).toEqual(['blobs'])
    const again = await stemwork(['doctor', '--data', data, '--api-only'])
    expect(again.stdout).toContain('job store')
    expect(again.stdout).not.toContain('separation')
  })

  test('says what to do about an unreachable store, and exits with status 1', async () => {
    const { status, ok, found } = await doctor(
      '--api-only',
      '--store',
      'postgres://127.0.0.1:1/none',
      '--blobs',
      `file:${place}`,
    )
    expect({ status, ok }).toEqual({ status: 1, ok: false })
    expect(found.storage).toMatchObject({ status: 'problem', found: expect.stringContaining('ECONNREFUSED') })
    const text = await command(['doctor', '--api-only', '--data', join(place, 'a-file')])
    expect(text.stdout).toMatch(/^ok {7}node/)
  })

  test('names a provider that the runtime does not have, and a workflow whose model is not here', async () => {
    vi.stubEnv('STEMWORK_MODELS', join(place, 'models'))
    onTestFinished(() => void vi.unstubAllEnvs())
    const provider = process.platform === 'darwin' ? 'dml' : 'coreml'
    const { status, found } = await doctor('--provider', provider, '--stems-4', 'htdemucs')
    expect(status).toBe(1)
    expect(found['service/stems-4']).toMatchObject({
      status: 'problem',
      found: expect.stringContaining('stemwork models pull htdemucs'),
    })
    expect(found.onnxruntime).toMatchObject({ status: 'problem', todo: expect.stringContaining('--provider') })
  })
})

describe('a check', () => {
  test('of Node knows the versions that the package works with', () => {
    for (const version of ['20.19.0', '22.12.0', '24.1.0']) expect(nodeVersion(version).status).toBe('ok')
    for (const version of ['18.20.0', '20.18.3', '21.7.0', '22.11.0'])
      expect(nodeVersion(version)).toMatchObject({ status: 'problem', todo: expect.stringContaining('Install Node') })
  })

  test.skipIf(process.platform === 'win32')('of a folder reports who can read it (skipped on Windows)', async () => {
    expect(await folder(place, { isPrivate: true })).toMatchObject({ status: 'ok' })
    await chmod(place, 0o755)
    expect(await folder(place, { isPrivate: true })).toMatchObject({ status: 'problem', todo: `chmod 700 ${place}` })
    expect(await folder(place, { isPrivate: false })).toMatchObject({ status: 'ok' })
    expect(await readdir(place)).toEqual([])
  })

  test('of a folder names what is in its way, and checks the parent of a folder that does not exist yet', async () => {
    const file = join(place, 'file')
    await writeFile(file, '')
    expect(await examine('data folder', () => folder(join(file, 'data'), { isPrivate: true }))).toMatchObject({
      check: 'data folder',
      status: 'problem',
      found: expect.stringContaining('a file'),
    })
    expect(await folder(join(place, 'a/b'), { isPrivate: true })).toMatchObject({ status: 'ok' })
    expect(await readdir(place)).toEqual(['file'])
    await mkdir(join(place, 'a'))
  })

  test('of a store notices a wrong clock, and leaves no job', async () => {
    const late = memoryJobs({ clock: () => Date.now() - 60_000 })
    expect(await jobStore(late)).toMatchObject({ status: 'problem', found: expect.stringMatching(/-(59|60)\.\d s/) })
    const right = memoryJobs()
    expect(await jobStore(right)).toMatchObject({ status: 'ok' })
    for (const store of [late, right]) {
      expect(await store.count({})).toBe(0)
      expect(await store.due('deleted', 10)).toEqual([])
    }
  })

  test('of a blob store notices what it loses', async () => {
    const store = memoryBlobs()
    expect(await blobs(store)).toMatchObject({ status: 'ok' })
    const losing = { ...store, get: async () => undefined }
    expect(await examine('blobs', () => blobs(losing))).toMatchObject({
      status: 'problem',
      found: expect.stringContaining('0 came back'),
    })
    const left: string[] = []
    for await (const { key } of store.list('doctor/')) left.push(key)
    expect(left).toEqual([])
  })

  test('of an unreachable blob store says what failed first', async () => {
    const away = {
      ...memoryBlobs(),
      put: () => Promise.reject(new Error('put')),
      delete: () => Promise.reject(new Error('delete')),
    }
    expect(await examine('blobs', () => blobs(away))).toMatchObject({ status: 'problem', found: 'put' })
  })

  test('that gets no answer reports a problem and does not wait forever', async () => {
    const silent = await examine('queue', () => new Promise(() => {}), { timeoutMs: 20 })
    expect(silent).toMatchObject({ status: 'problem', found: expect.stringContaining('No answer within 0.02 s') })
  })
})
