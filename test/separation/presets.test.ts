import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { beforeAll, describe, expect, it } from 'vitest'
import { ProgressLine } from '../../src/cli/terminal/progress-line.js'
import { separateSong } from '../../src/cli/files/separate-song.js'
import { knownModels } from '../../src/core/models/known-models.js'
import { listPresets, modelPreset, modelPresets, modelsOfPreset } from '../../src/core/models/presets.js'
import { presetWorkflow, workflowOfPreset } from '../../src/core/workflows/separation/preset-workflow.js'
import { manifestOf, stereoMusic, worstDifference } from './architecture-run.js'
import { shares, writeModelFolder } from './model-folder.js'
import { readAudio, writeWav } from './tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()
const own = (name: string) => join(folder, name)
beforeAll(async () => {
  await writeWav(own('song.wav'), stereoMusic(30_001), 44_100)
})

/** A model folder whose vocals are the mixture times a gain. */
function model(name: string, gain: number): Promise<string> {
  const manifest = manifestOf('htdemucs', { stems: ['drums', 'bass', 'other', 'vocals'] })
  return writeModelFolder(own(name), manifest, shares([0, 0, 0, gain]))
}

describe('the presets', () => {
  it('consist of known models, and each can become a workflow', () => {
    const names = knownModels.map(({ facts }) => facts.name)
    for (const preset of modelPresets) {
      for (const each of modelsOfPreset(preset)) expect(names).toContain(each)
      const workflow = presetWorkflow(preset.name)
      const outputs = Object.keys(workflow.outputs(workflow.params.parse({ inputUrl: 'https://a.org/b' }) as never))
      const { vocals, accompaniments } = preset.next ?? {}
      expect(outputs).toEqual(preset.next ? [vocals, accompaniments, 'accompaniments'] : ['vocals', 'accompaniments'])
    }
  })

  it('for commercial use have no model whose licence is not stated or forbids it', () => {
    const found = listPresets({ commercial: true })
    expect(found.map(({ name }) => name)).toEqual(['vocals-mit'])
    const models = found.flatMap(modelsOfPreset).map((name) => knownModels.find(({ facts }) => facts.name === name))
    expect(models.map((each) => each?.isCommercial)).toEqual([true, true])
    expect(() => modelPreset('lead-and-backing', { commercial: true })).toThrow(
      'it needs kara (licence: not stated by its authors)',
    )
    expect(() => modelPreset('lead')).toThrow('There is no preset "lead". Expected one of: vocals-mean,')
  })

  it('that are chains separate the vocals once more; their stems add up to the mixture', async () => {
    const preset = {
      name: 'chain',
      description: 'Two models.',
      models: [await model('first', 0.8), await model('second', 0.4)],
      ensemble: 'max_fft' as const,
      next: { model: await model('third', 0.75), vocals: 'lead', accompaniments: 'backing' },
    }
    const request = {
      settings: {},
      stems: [],
      models: [],
      workflow: workflowOfPreset(preset, { format: '32f', threads: 1 }),
      source: own('song.wav'),
      isUrl: false,
      folder: own('stems'),
      allowPrivate: false,
    }
    const { details, seconds } = await separateSong(
      request,
      new AbortController().signal,
      new ProgressLine(new PassThrough()),
    )
    expect(seconds).toBe(30_001 / 44_100)
    expect(details).toMatchObject({ clippedSamples: 0, steps: { next: { model: { name: 'third' } } } })
    expect((await readdir(own('stems'))).sort()).toEqual(['accompaniments.wav', 'backing.wav', 'lead.wav'])
    const song = stereoMusic(30_001)
    const read = async (name: string) => (await readAudio(join(own('stems'), `${name}.wav`))).channels
    const [lead, backing, rest] = [await read('lead'), await read('backing'), await read('accompaniments')]
    const scaled = song.map((plane) => plane.map((value) => 0.8 * 0.75 * value))
    expect(worstDifference(lead, scaled)).toBeLessThan(1e-3)
    const sum = song.map((plane, channel) =>
      plane.map((_, i) => lead[channel]![i]! + backing[channel]![i]! + rest[channel]![i]!),
    )
    expect(worstDifference(sum, song)).toBeLessThan(1e-6)
  })

  it('that are chains refuse a format that loses between their steps', () => {
    expect(() => presetWorkflow('dry-vocals', { format: 'mp3' })).toThrow('Choose a WAV or FLAC format.')
  })
})
