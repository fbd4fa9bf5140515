import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import {
  modelInfo,
  type PullOptions,
  type PullProgress,
  pullModel,
  removeModel,
  resolveModel,
  verifyModel,
} from '../../src/core/models/index.js'
import { manifestFor, sha256, testFolder, weightBytes, writeManifest } from './model-files.js'
import { weightsServer } from './weights-server.js'

const at = testFolder()
const bytes = weightBytes(3_000_000)
let count = 0

/** A manifest, an empty cache and a server that has the weights. */
async function setUp(changes: Record<string, unknown> = {}) {
  const cacheFolder = at(`cache-${++count}`)
  const manifest = await writeManifest(at(`manifests-${count}/own.json`), manifestFor(bytes, changes))
  const server = await weightsServer({ 'own.onnx': bytes })
  const options: PullOptions = { cacheFolder, mirror: server.url, retryDelayMs: 1 }
  return { cacheFolder, manifest, server, options, folder: join(cacheFolder, `own-${sha256(bytes).slice(0, 12)}`) }
}

describe('pulling a model', () => {
  it('downloads it once, with progress, and then never asks again', async () => {
    const { cacheFolder, manifest, server, options, folder } = await setUp()
    await expect(resolveModel(manifest, cacheFolder)).rejects.toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      message: `The model ${manifest} is not on this machine. Fetch it: stemwork models pull ${manifest}`,
    })
    const seen: PullProgress[] = []
    const pulled = await pullModel(manifest, { ...options, onProgress: (progress) => seen.push(progress) })
    expect(sha256(await readFile(pulled.path))).toBe(sha256(bytes))
    expect(seen.at(-1)).toEqual({ file: 'own.onnx', bytesDone: bytes.length, bytesTotal: bytes.length })
    expect(seen.map(({ bytesDone }) => bytesDone)).toEqual(seen.map(({ bytesDone }) => bytesDone).sort((a, b) => a - b))
    expect((await readdir(folder)).sort()).toEqual(['model.json', 'own.onnx'])
    expect(await pullModel(manifest, options)).toEqual(pulled)
    expect(await resolveModel(manifest, cacheFolder)).toEqual(pulled)
    expect(server.requests).toHaveLength(1)
  })

  it('accepts models that version 0.1 pulled, whose manifests have "kind" for "architecture"', async () => {
    const { cacheFolder, manifest, server, options, folder } = await setUp()
    const pulled = await pullModel(manifest, options)
    const { architecture, ...rest } = JSON.parse(await readFile(join(folder, 'model.json'), 'utf8'))
    await writeManifest(join(folder, 'model.json'), { ...rest, kind: architecture })
    expect(await resolveModel(manifest, cacheFolder)).toEqual(pulled)
    expect(await pullModel(manifest, options)).toEqual(pulled)
    expect(server.requests).toHaveLength(1)
  })

  it('leaves a folder that works as a model by itself', async () => {
    const { manifest, options, folder } = await setUp()
    const { path } = await pullModel(manifest, options)
    expect((await resolveModel(folder, at('elsewhere'))).path).toBe(path)
  })

  it('resumes broken connections where they broke', async () => {
    const { manifest, server, options } = await setUp()
    server.cuts.push(1_000_000, 0, 700_000)
    await pullModel(manifest, options)
    const [first, ...others] = server.requests
    expect(first).toMatchObject({ range: undefined, ifRange: undefined })
    for (const { range, ifRange } of others) {
      expect(Number(/bytes=(\d+)-/.exec(range ?? '')?.[1])).toBeGreaterThan(0)
      expect(ifRange).toMatch(/^"[0-9a-f]{16}"$/)
    }
    expect(server.requests.reduce((sum, { sent }) => sum + sent, 0)).toBeLessThan(bytes.length * 1.7)
  })

  it('continues in a later call with the bytes of an earlier one', async () => {
    const { manifest, server, options } = await setUp()
    server.cuts.push(1_500_000, 0, 0, 0, 0, 0, 0)
    await expect(pullModel(manifest, options)).rejects.toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      retryable: true,
      message: expect.stringContaining('Run it again'),
    })
    server.cuts.length = 0
    server.requests.length = 0
    await pullModel(manifest, options)
    expect(server.requests).toHaveLength(1)
    expect(server.requests[0]!.range).toMatch(/^bytes=[1-9]\d*-$/)
  })

  it('stops when it is aborted, and continues later', async () => {
    const { manifest, server, options } = await setUp()
    const controller = new AbortController()
    const onProgress = () => controller.abort(new Error('enough'))
    await expect(pullModel(manifest, { ...options, signal: controller.signal, onProgress })).rejects.toThrow('enough')
    await pullModel(manifest, options)
    expect(server.requests.at(-1)?.range).toMatch(/^bytes=[1-9]\d*-$/)
  })

  it('starts over when the file has changed on the server', async () => {
    const { manifest, server, options } = await setUp()
    server.files.set('own.onnx', weightBytes(bytes.length, 2))
    server.cuts.push(1_000_000, 0, 0, 0, 0, 0, 0)
    await expect(pullModel(manifest, options)).rejects.toMatchObject({ retryable: true })
    server.cuts.length = 0
    server.files.set('own.onnx', bytes)
    expect(sha256(await readFile((await pullModel(manifest, options)).path))).toBe(sha256(bytes))
  })

  it('starts over when resumed bytes turn out to be of another version, and where ranges are ignored', async () => {
    for (const ranges of ['unversioned', 'ignored'] as const) {
      const { manifest, server, options } = await setUp()
      server.ranges = ranges
      server.files.set('own.onnx', weightBytes(bytes.length, 2))
      server.cuts.push(1_000_000, 0, 0, 0, 0, 0, 0)
      await expect(pullModel(manifest, options)).rejects.toMatchObject({ retryable: true })
      server.cuts.length = 0
      server.files.set('own.onnx', bytes)
      expect(sha256(await readFile((await pullModel(manifest, options)).path))).toBe(sha256(bytes))
    }
  })

  it('refuses a file with another hash, keeps nothing of it, and takes the right one later', async () => {
    const { cacheFolder, manifest, server, options, folder } = await setUp()
    server.files.set('own.onnx', weightBytes(bytes.length, 3))
    await expect(pullModel(manifest, options)).rejects.toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      message: expect.stringContaining(`expected ${sha256(bytes)}`),
    })
    expect(await readdir(folder)).toEqual([])
    await expect(resolveModel(manifest, cacheFolder)).rejects.toThrow('models pull')
    server.files.set('own.onnx', Buffer.concat([bytes, Buffer.from('more')]))
    await expect(pullModel(manifest, options)).rejects.toThrow(/more than the expected 3000000 bytes/)
    server.files.set('own.onnx', bytes)
    await pullModel(manifest, options)
  })

  it('never overwrites a file that it did not download', async () => {
    const { manifest, server, options, folder } = await setUp()
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'own.onnx'), 'mine')
    await expect(pullModel(manifest, options)).rejects.toThrow('already exists and is a different file')
    expect(await readFile(join(folder, 'own.onnx'), 'utf8')).toBe('mine')
    expect(server.requests).toHaveLength(0)
  })

  it('uses an existing file with the right content', async () => {
    const { manifest, server, options, folder } = await setUp()
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'own.onnx'), bytes)
    await pullModel(manifest, options)
    expect(server.requests).toHaveLength(0)
  })

  it('does not try a server again that refuses, and retries one that is busy', async () => {
    const { manifest, server, options } = await setUp()
    server.statuses.push(404)
    await expect(pullModel(manifest, options)).rejects.toThrow('HTTP status 404')
    expect(server.requests).toHaveLength(1)
    server.statuses.push(503, 429)
    await pullModel(manifest, options)
    expect(server.requests).toHaveLength(4)
  })

  it('tries the addresses one after the other', async () => {
    const here = at('copies/own.onnx')
    await mkdir(at('copies'))
    await writeFile(here, bytes)
    const { manifest, options } = await setUp({ addresses: ['https://weights.example/own.onnx', here] })
    const { path } = await pullModel(manifest, { ...options, mirror: at('no-such-folder') })
    expect(sha256(await readFile(path))).toBe(sha256(bytes))
    expect(sha256(await readFile(here))).toBe(sha256(bytes))
  })

  it('takes a copy from file: addresses relative to the manifest, also offline', async () => {
    for (const address of ['weights/own.onnx', 'file:weights/own.onnx']) {
      const { cacheFolder, manifest } = await setUp({ addresses: [address] })
      await mkdir(join(manifest, '../weights'))
      await writeFile(join(manifest, '../weights/own.onnx'), bytes)
      const { path } = await pullModel(manifest, { cacheFolder, offline: true })
      expect(path.startsWith(cacheFolder)).toBe(true)
    }
  })

  it('with a password in the address of the mirror fails without repeating it', async () => {
    const { manifest, options, server } = await setUp()
    const mirror = server.url.replace('http://', 'http://me:hunter2@')
    const failure: unknown = await pullModel(manifest, { ...options, mirror }).catch((error: unknown) => error)
    expect(String(failure)).toContain('a user name or a password')
    expect(inspect(failure, { depth: null })).not.toContain('hunter2')
  })

  it('takes files from a folder instead of all servers', async () => {
    const folder = at('mirror')
    await mkdir(folder)
    await writeFile(join(folder, 'own.onnx'), bytes)
    const { manifest, options, server } = await setUp()
    await pullModel(manifest, { ...options, mirror: folder, offline: true })
    expect(server.requests).toHaveLength(0)
  })

  it('makes no request when it is offline, and says so', async () => {
    const { manifest, server, options } = await setUp()
    await expect(pullModel(manifest, { ...options, offline: true })).rejects.toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      message: expect.stringContaining('offline mode'),
    })
    expect(server.requests).toHaveLength(0)
  })

  it('does not accept unencrypted addresses from a manifest', async () => {
    const { manifest, server, cacheFolder } = await setUp({ addresses: ['http://127.0.0.1:9/own.onnx'] })
    await expect(pullModel(manifest, { cacheFolder })).rejects.toThrow('expected https:')
    expect(server.requests).toHaveLength(0)
  })

  it('asks for acceptance of the terms once, and again when they change', async () => {
    const { cacheFolder, manifest, server, options } = await setUp({ terms: 'For research only.' })
    await expect(pullModel(manifest, options)).rejects.toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      details: { terms: 'For research only.' },
    })
    expect(server.requests).toHaveLength(0)
    const { path } = await pullModel(manifest, { ...options, acceptLicence: true })
    expect(await modelInfo(manifest, cacheFolder)).toMatchObject({
      terms: 'For research only.',
      termsAccepted: true,
      installed: true,
    })
    expect(JSON.parse(await readFile(join(path, '../licence-accepted.json'), 'utf8'))).toMatchObject({
      terms: 'For research only.',
    })
    await writeManifest(manifest, manifestFor(bytes, { terms: 'For nobody.' }))
    expect(await modelInfo(manifest, cacheFolder)).toMatchObject({ termsAccepted: false })
  })

  it('remembers an acceptance after a failed pull', async () => {
    const { manifest, server, options } = await setUp({ terms: 'For research only.' })
    server.statuses.push(404)
    await expect(pullModel(manifest, { ...options, acceptLicence: true })).rejects.toThrow('404')
    await pullModel(manifest, options)
  })

  it('verifies and removes only what it has downloaded', async () => {
    const { cacheFolder, manifest, options, folder } = await setUp()
    const { path } = await pullModel(manifest, options)
    await writeFile(join(folder, 'notes.txt'), 'mine')
    expect((await verifyModel(manifest, cacheFolder)).path).toBe(path)
    await writeFile(path, weightBytes(bytes.length, 4))
    await expect(verifyModel(manifest, cacheFolder)).rejects.toThrow('expected')
    expect(await removeModel(manifest, cacheFolder)).toBe(true)
    expect(await readdir(folder)).toEqual(['notes.txt'])
    expect(await removeModel(manifest, cacheFolder)).toBe(false)
    await expect(verifyModel(manifest, cacheFolder)).rejects.toThrow('models pull')
  })

  it('never removes files that are next to their manifest', async () => {
    const { cacheFolder, manifest } = await setUp({ addresses: [] })
    await writeFile(join(manifest, '../own.onnx'), bytes)
    expect((await resolveModel(manifest, cacheFolder)).path).toBe(join(manifest, '../own.onnx'))
    await expect(removeModel(manifest, cacheFolder)).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
    expect(existsSync(join(manifest, '../own.onnx'))).toBe(true)
  })
})

describe('several processes', () => {
  const puller = new URL('./fixtures/pull-child.mjs', import.meta.url)
  const start = (manifest: string, { cacheFolder, mirror }: PullOptions, tell = '') =>
    fork(puller, [manifest, String(cacheFolder), String(mirror), tell], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })

  it('download a model once when they want it at the same time', async () => {
    const { manifest, server, options } = await setUp()
    const children = [start(manifest, options), start(manifest, options), start(manifest, options)]
    const results = await Promise.all(
      children.map(async (child) => (await once(child, 'message'))[0] as { path?: string; error?: string }),
    )
    expect(new Set(results.map(({ path, error }) => error ?? path)).size).toBe(1)
    expect((await stat(String(results[0]!.path))).size).toBe(bytes.length)
    expect(server.requests).toHaveLength(1)
  })

  it('do not wait for one that was killed, and continue with what it had', async () => {
    const { manifest, server, options, folder } = await setUp()
    server.hold = 1_000_000
    const killed = start(manifest, options, 'tell')
    await once(killed, 'message')
    server.hold = undefined
    const heir = pullModel(manifest, options)
    killed.kill('SIGKILL')
    await once(killed, 'exit')
    expect(sha256(await readFile((await heir).path))).toBe(sha256(bytes))
    expect(server.requests.map(({ range }) => range)).toEqual([undefined, expect.stringMatching(/^bytes=[1-9]\d*-$/)])
    expect((await readdir(folder)).sort()).toEqual(['model.json', 'own.onnx'])
  })
})
