import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { embeddedModelFolder } from '../../src/core/models/load-model.js'
import { resolveModel } from '../../src/core/models/registry.js'
import { writeModel } from './models.js'
import { gainNetwork } from './onnx-graph.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

const network = gainNetwork()
const model = (name: string, changes?: Record<string, unknown>) => writeModel(join(folder, name), network, changes)

describe('a model folder', () => {
  it('comes with the package, complete and unchanged', async () => {
    const { manifest, path } = await resolveModel(embeddedModelFolder)
    expect(manifest).toMatchObject({
      architecture: 'embedded',
      licence: 'MIT',
      stems: ['vocals', 'accompaniments'],
      audio: { sampleRate: 44_100 },
    })
    expect((await readFile(path)).length).toBe(manifest.bytes)
    const card = await readFile(join(embeddedModelFolder, 'README.md'), 'utf8')
    expect(card).toContain('basic offline quality')
    expect(card).toContain(`${manifest.bytes.toLocaleString('en')} bytes, sha256 \`${manifest.sha256}\``)
  })

  it('is refused when its file is not the one that its manifest describes', async () => {
    await expect(resolveModel(await model('hash', { sha256: 'a'.repeat(64) }))).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringContaining('sha256'),
    })
    await expect(resolveModel(await model('size', { bytes: 5 }))).rejects.toThrow('expected 5')
    await expect(resolveModel(await model('absent', { file: 'other.onnx' }))).rejects.toThrow('other.onnx is missing')
  })

  it('is checked again when its file changes', async () => {
    const path = await model('changed')
    await resolveModel(path)
    await writeFile(
      join(path, 'model.onnx'),
      network.map((byte, index) => (index === network.length - 1 ? byte ^ 1 : byte)),
    )
    await expect(resolveModel(path)).rejects.toThrow('sha256')
  })

  it.each([
    ['sha256', { sha256: '3dd5' }],
    ['file', { file: '../model.onnx' }],
    ['architecture', { architecture: '' }],
    ['stems.0', { stems: ['kazoo'] }],
    ['audio.channels', { audio: { sampleRate: 44_100, channels: 1 } }],
  ])('is refused with the name of the field that is wrong: %s', async (field, changes) => {
    await expect(resolveModel(await model(field, changes))).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringContaining(` ${field}: `),
    })
  })

  it('is refused without a manifest', async () => {
    await expect(resolveModel(join(folder, 'nowhere'))).rejects.toThrow('model.json is missing')
  })
})
