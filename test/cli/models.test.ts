import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { manifestFor, sha256, weightBytes, writeManifest } from '../models/model-files.js'
import { weightsServer } from '../models/weights-server.js'
import { command, Stemwork, stemwork } from './stemwork.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()
let manifest: string
let cache: string
let count = 0
const bytes = weightBytes(2_000_000)
const before = { ...process.env }

beforeAll(async () => {
  manifest = await writeManifest(join(folder, 'own.json'), manifestFor(bytes, { terms: 'For research only.' }))
})
beforeEach(() => {
  cache = join(folder, `cache-${++count}`)
  Object.assign(process.env, { STEMWORK_MODELS: cache, STEMWORK_OFFLINE: '0' })
  delete process.env.STEMWORK_MODEL_MIRROR
})
afterAll(async () => {
  for (const name of ['STEMWORK_MODELS', 'STEMWORK_OFFLINE', 'STEMWORK_MODEL_MIRROR']) {
    if (before[name] === undefined) delete process.env[name]
    else process.env[name] = before[name]
  }
})

async function withServer() {
  const server = await weightsServer({ 'own.onnx': bytes })
  process.env.STEMWORK_MODEL_MIRROR = server.url
  return server
}

describe('stemwork models', () => {
  it('lists what is known, with licence, size and score, as a table or JSON', async () => {
    const { status, stdout } = await stemwork(['models', 'list'])
    expect(status).toBe(0)
    expect(stdout).toMatch(/^embedded +embedded +2\.4 MB .*installed .*MIT$/m)
    expect(stdout).toMatch(/^kim-vocal-2 +mdx +66\.8 MB +medium .*uSDR.* not stated by its authors$/m)
    const models = JSON.parse((await command(['models', 'list', '--json'])).stdout)
    expect(models.find(({ name }: { name: string }) => name === 'htdemucs')).toMatchObject({
      bytes: 174_263_526,
      installed: false,
      terms: expect.stringContaining('research'),
    })
  })

  it('lists presets, on request only those for commercial use, and refuses others for it', async () => {
    const all = JSON.parse((await command(['models', 'presets', '--json'])).stdout) as { name: string }[]
    expect(all.map(({ name }) => name)).toContain('lead-and-backing')
    const { stdout } = await command(['models', 'presets', '--commercial'])
    expect(stdout).toMatch(/^vocals-mit: .*\n {2}mel-band-roformer-kim-fp16 \+ scnet-large \(avg_wave\)\n$/)
    process.env.STEMWORK_OFFLINE = '1'
    const refusals: [string[], string][] = [
      [['models', 'pull', 'lead-and-backing', '--commercial'], 'not for commercial use: it needs kara'],
      [
        ['models', 'pull', 'lead-and-backing'],
        'mel-roformer.fp16.onnx of the model mel-band-roformer-kim-fp16 is not on',
      ],
      [
        ['separate', 'song.wav', '--preset', 'lead-and-backing', '--commercial'],
        'not for commercial use: it needs kara',
      ],
      [['separate', manifest, '--preset', 'lead-and-backing'], 'stemwork models pull mel-band-roformer-kim-fp16'],
      [['separate', 'song.wav', '--preset', 'nothing'], 'There is no preset "nothing"'],
      [['separate', 'song.wav', '--preset', 'dry-vocals', '--model', 'best'], 'leave out --model'],
      [['separate', 'song.wav', '--commercial'], 'use it with --preset'],
      [['separate', 'a.wav', 'b.wav', '-o', 'x', '--preset', 'dry-vocals'], 'one song at a time'],
    ]
    for (const [args, message] of refusals) {
      const { status, stderr } = await command(args)
      expect([status === 0, stderr]).toEqual([false, expect.stringContaining(message)])
    }
  })

  it('asks for acceptance of the terms, pulls with progress, and then finds the model', async () => {
    const server = await withServer()
    const refused = await command(['models', 'pull', manifest])
    expect(refused).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/For research only\. .*--accept-licence/),
    })
    expect(server.requests).toHaveLength(0)
    const pulled = await command(['models', 'pull', manifest, '--accept-licence'])
    expect(pulled).toMatchObject({
      status: 0,
      stderr: expect.stringMatching(
        /^\S+own\.json: 2\.0 MB, licence: .+\nFor research only\.\nDownloading own\.onnx \d+%[^]*100%/,
      ),
    })
    const { stdout } = await command(['models', 'path', manifest])
    expect(sha256(await readFile(stdout.trim()))).toBe(sha256(bytes))
    expect(pulled.stdout).toContain(stdout.trim())
    expect(JSON.parse((await command(['models', 'pull', manifest, '--json'])).stdout)).toMatchObject({
      name: 'own',
      downloaded: false,
      sha256: sha256(bytes),
    })
    expect(server.requests).toHaveLength(1)
    expect((await command(['models', 'verify', manifest])).stdout).toContain('correct')
    expect((await command(['models', 'info', manifest])).stdout).toMatch(/terms +For research only\. \(accepted\)/)
    expect(JSON.parse((await command(['models', 'remove', manifest, '--json'])).stdout)).toMatchObject({
      removed: true,
    })
    expect((await command(['models', 'path', manifest])).stderr).toContain(`stemwork models pull ${manifest}`)
  })

  it('stays off the network with --offline, and reports failures as JSON when asked', async () => {
    const server = await withServer()
    const { status, stdout } = await command(['models', 'pull', manifest, '--accept-licence', '--offline', '--json'])
    expect(status).toBe(1)
    expect(JSON.parse(stdout).error).toMatchObject({
      code: 'MODEL_UNAVAILABLE',
      message: expect.stringContaining('offline'),
    })
    process.env.STEMWORK_OFFLINE = '1'
    expect((await command(['models', 'pull', manifest, '--accept-licence'])).stderr).toContain('offline')
    expect(server.requests).toHaveLength(0)
  })

  it('keeps what has arrived when it is interrupted', async () => {
    const server = await withServer()
    server.hold = 1_000_000
    const process = new Stemwork(['models', 'pull', manifest, '--accept-licence'])
    await process.printed('stderr', /Downloading own\.onnx \d+%/)
    process.kill('SIGINT')
    expect(await process.finished()).toMatchObject({
      status: 130,
      stderr: expect.stringContaining('run the same command to continue'),
    })
    server.hold = undefined
    expect((await command(['models', 'pull', manifest])).status).toBe(0)
    expect(server.requests.at(-1)?.range).toMatch(/^bytes=[1-9]\d*-$/)
    const [own] = (await readdir(cache)).filter((name) => name.startsWith('own-'))
    expect((await readdir(join(cache, own!))).sort()).toEqual(['licence-accepted.json', 'model.json', 'own.onnx'])
  })

  it('chooses what to pull by quality, licence and speed', async () => {
    process.env.STEMWORK_OFFLINE = '1'
    const nameOf = async (...options: string[]) => {
      const { status, stderr } = await command(['models', 'pull', 'best', ...options])
      expect(status).toBe(1)
      return /of the model (\S+) is not on this machine/.exec(stderr)?.[1]
    }
    expect(await nameOf()).toBe('mel-band-roformer-kim-fp16')
    expect(await nameOf('--commercial')).toBe('mel-band-roformer-kim-fp16')
    expect(await nameOf('--fast')).toBe('spleeter-2stems')
  })

  it('checks what its addresses serve, and keeps nothing', async () => {
    const server = await withServer()
    expect(await command(['models', 'check', manifest])).toMatchObject({
      status: 0,
      stdout: 'ok      own: https://weights.example/own.onnx\n',
    })
    expect((await command(['models', 'check', 'embedded'])).stdout).toBe(
      'embedded has no addresses: its files are on this machine.\n',
    )
    server.files.set('own.onnx', weightBytes(2_000_000, 2))
    const { status, stdout } = await command(['models', 'check', manifest, '--json'])
    expect(status).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject([{ model: 'own', problem: expect.stringContaining('different file') }])
    await expect(readdir(cache)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it.each([
    [['models', 'pull', 'umx-hq', '--fast'], '--commercial and --fast choose among models'],
    [['models', 'pul', 'x'], 'There is no "models pul". Did you mean pull?'],
    [['models', 'pull'], 'models pull needs the name of a model'],
    [['models', 'list', 'x'], 'models list takes no name'],
    [['models'], 'An argument is missing.'],
  ])('refuses %j with status 2', async (args, message) => {
    expect(await command(args)).toMatchObject({ status: 2, stdout: '', stderr: expect.stringContaining(message) })
  })

  it('lists the known models if a model is unknown', async () => {
    expect(await command(['models', 'info', 'nonsense'])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('htdemucs'),
    })
  })
})

describe('--model', () => {
  it('is refused at once by separate and serve if the model is not on this machine', async () => {
    const todo = 'stemwork models pull kim-vocal-2'
    expect(await command(['separate', manifest, '--model', 'kim-vocal-2', '-o', join(folder, 'out')])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(todo),
    })
    expect(await command(['serve', '--port', '0', '--allowed-models', 'kim-vocal-2'])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(todo),
    })
  })
})
