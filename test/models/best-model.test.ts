import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  bestModel,
  checkAddresses,
  listModels,
  modelInfo,
  removeModel,
  resolveModel,
} from '../../src/core/models/index.js'
import { modelNames } from '../../src/core/models/registry.js'
import { knownModels } from '../../src/core/models/known-models.js'
import { manifestFor, testFolder, weightBytes, writeManifest } from './model-files.js'
import { weightsServer } from './weights-server.js'

const at = testFolder()
const known = (name: string) => knownModels.find(({ facts }) => facts.name === name)

/** Puts a model into the cache as `pull` leaves it, with files of a few bytes. */
async function install(cacheFolder: string, name: string): Promise<void> {
  const folder = join(cacheFolder, name)
  await mkdir(folder, { recursive: true })
  const files = (known(name)?.files ?? []).map(({ file, bytes, sha256 }) => ({ file, bytes, sha256 }))
  for (const { file } of files) await writeFile(join(folder, file), 'some weights')
  const [first, ...moreFiles] = files
  await writeFile(join(folder, 'model.json'), JSON.stringify({ ...first, moreFiles }))
}

describe('the best model to pull', () => {
  it('is the one with the highest published score', () => {
    expect(bestModel()).toBe('mel-band-roformer-kim-fp16')
    const highest = Math.max(...knownModels.map(({ quality = 0 }) => quality))
    expect(known(bestModel())?.quality).toBe(highest)
  })

  it('has a licence for commercial use, or is fast, on request', () => {
    const commercial = known(bestModel({ commercial: true }))
    expect(commercial).toMatchObject({ isCommercial: true, facts: { licence: expect.stringContaining('MIT') } })
    expect(known(bestModel({ fast: true }))?.speed).toBe('fast')
    expect(known(bestModel({ fast: true, commercial: true }))).toMatchObject({ isCommercial: true, speed: 'fast' })
  })

  it('is never one whose licence is not stated or forbids commercial use', () => {
    for (const { isCommercial, terms, facts } of knownModels) {
      if (isCommercial === true) expect([terms, facts.licence]).toEqual([undefined, expect.stringContaining('MIT')])
    }
  })
})

describe('the best model on this machine', () => {
  it('is the bundled one if none was pulled', async () => {
    const { manifest } = await resolveModel('best', at('empty'))
    expect(manifest).toEqual((await resolveModel('embedded')).manifest)
    expect(await modelInfo('best', at('empty'))).toMatchObject({ name: 'embedded', installed: true })
  })

  it('is the best of those that were pulled', async () => {
    const cache = at('pulled')
    await install(cache, 'umx-hq')
    expect(await modelInfo('best', cache)).toMatchObject({ name: 'umx-hq', installed: true })
    await install(cache, 'htdemucs')
    expect(await modelInfo('best', cache)).toMatchObject({ name: 'htdemucs', installed: true })
    await install(cache, 'kim-vocal-2')
    expect(await modelInfo('best', cache)).toMatchObject({ name: 'kim-vocal-2', installed: true })
  })

  it('is not silently replaced by another when its files are damaged', async () => {
    const cache = at('damaged')
    await install(cache, 'kim-vocal-2')
    await expect(resolveModel('best', cache)).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringMatching(/Kim_Vocal_2\.onnx has 12 bytes; expected 66759214/),
    })
  })

  it('can only be removed by its own name', async () => {
    await expect(removeModel('best', at('empty'))).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
    expect(modelNames).not.toContain('best')
    expect((await listModels(at('empty'))).map(({ name }) => name)).not.toContain('best')
  })
})

describe('checking addresses', () => {
  const bytes = weightBytes(300_000)
  const checks = async (manifest: string, mirror: string) => {
    const found = []
    for await (const check of checkAddresses([manifest], { mirror, retryDelayMs: 1, offline: false })) found.push(check)
    return found
  }

  it('downloads every file from each address, one by one, and keeps nothing', async () => {
    const server = await weightsServer({ 'own.onnx': bytes })
    const addresses = [`${server.url}/first/own.onnx`, 'https://weights.example/own.onnx']
    const manifest = await writeManifest(at('check/own.json'), manifestFor(bytes, { addresses }))
    const before = await readdir(at('check'))
    expect(await checks(manifest, server.url)).toEqual([
      expect.objectContaining({ address: addresses[0], bytes: bytes.length }),
      expect.objectContaining({ address: addresses[1], bytes: bytes.length }),
    ])
    expect(server.requests).toHaveLength(2)
    expect(await readdir(at('check'))).toEqual(before)
  })

  it('reports what is different, and continues with the next model', async () => {
    const server = await weightsServer({ 'own.onnx': weightBytes(300_000, 2) })
    const manifest = await writeManifest(at('check/other.json'), manifestFor(bytes))
    const [check] = await checks(manifest, server.url)
    expect(check).toMatchObject({ model: 'own', file: 'own.onnx', address: 'https://weights.example/own.onnx' })
    expect(check?.problem).toMatch(/different file: it has the sha256 [0-9a-f]{64}; expected [0-9a-f]{64}/)
  })
})
