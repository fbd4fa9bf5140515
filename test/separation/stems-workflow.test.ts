import { cp, mkdtemp, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import type { WorkOrder, WorkProgress } from '../../src/core/engine/ports/runner.js'
import { processRunner } from '../../src/core/engine/runner/process-runner.js'
import { stemsWorkflow } from '../../src/core/workflows/separation/stems-workflow.js'
import type { Workflow } from '../../src/core/engine/workflow/workflow.js'
import { run } from '../runner/run-order.js'
import { writeModel } from './models.js'
import { maskNetwork } from './onnx-graph.js'
import { maxDifference, noise, readAudio, writeWav } from './tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const usual = stemsWorkflow({ format: '32f', threads: 1 })
const workflow = usual
const folder = temporaryFolder()
/** The runner's child has loaded the network before the second test. */
const usualRunner = processRunner({ resolve: () => usual })
afterAll(async () => {
  await usualRunner.close()
})

async function order(
  path: string,
  directory: string,
  maxAudioSeconds = 600,
  workflow: Workflow = usual,
  params = {},
): Promise<WorkOrder> {
  return {
    jobId: 'job-1',
    workflow: workflow.id,
    module: workflow.module?.url ?? null,
    settings: workflow.module?.settings,
    params: { inputUrl: 'https://example.com/song.wav', ...params },
    inputs: { inputUrl: { path, bytes: (await stat(path)).size } },
    directory: await mkdtemp(join(folder, directory)),
    limits: { maxAudioSeconds },
  }
}

describe('the stems workflow', () => {
  it('declares what the service promises', () => {
    expect(workflow.id).toBe('service/stems-vocals-accompaniment')
    expect(workflow.inputs).toEqual(['inputUrl'])
    expect(workflow.outputs({})).toEqual({
      vocals: { fileName: 'vocals.wav', contentType: 'audio/wav' },
      accompaniments: { fileName: 'accompaniments.wav', contentType: 'audio/wav' },
    })
  })

  it.each([{ inputUrl: 'https://example.com/a.mp3' }, { inputUrl: 'http://127.0.0.1:8080/a.mp3?x=1' }])(
    'accepts %o',
    (params) => {
      expect(workflow.params.safeParse(params).success).toBe(true)
    },
  )

  it.each([
    {},
    { inputUrl: 'song.mp3' },
    { inputUrl: 'file:///etc/passwd' },
    { inputUrl: 7 },
    { inputUrl: 'https://example.com/a.mp3', other: 1 },
    { inputUrl: 'https://example.com/'.padEnd(8193, 'x') },
  ])('refuses %o', (params) => {
    expect(workflow.params.safeParse(params).success).toBe(false)
  })

  it('names the setting that is wrong', () => {
    expect(() => stemsWorkflow({ threads: 0 })).toThrow('threads')
    expect(() => stemsWorkflow({ format: '8' } as unknown as Parameters<typeof stemsWorkflow>[0])).toThrow('format')
  })

  it('refuses to run in the host, whose event loop it would block', async () => {
    const [stage] = workflow.stages
    await expect((async () => stage!.run({} as Parameters<NonNullable<typeof stage>['run']>[0]))()).rejects.toThrow(
      'child process',
    )
  })

  it('separates in a child process, reports progress, and loads the network once', async () => {
    const path = join(folder, 'song.wav')
    const mixture = [noise(450_000, 1), noise(450_000, 2)]
    await writeWav(path, mixture, 44_100)
    const model = join(folder, 'model')
    await cp(fileURLToPath(new URL('../../models/embedded', import.meta.url)), model, { recursive: true })
    const weights = join(model, 'model.onnx')
    const checkedAt = new Date('2026-01-01')
    await utimes(weights, checkedAt, checkedAt)
    const own = stemsWorkflow({ format: '32f', threads: 1, model })
    const runner = processRunner({ resolve: () => own })
    try {
      const progress: WorkProgress[] = []
      const separate = async () =>
        run(runner, await order(path, 'run-', 600, own), { onProgress: (each) => void progress.push(each) })
      const first = await separate()
      // Same size and time, so that the file counts as the checked one.
      await writeFile(weights, Buffer.alloc((await stat(weights)).size))
      await utimes(weights, checkedAt, checkedAt)
      const second = await separate()
      expect(first.outputs).toMatchObject({
        vocals: { fileName: 'vocals.wav', contentType: 'audio/wav' },
        accompaniments: { fileName: 'accompaniments.wav' },
      })
      expect(first.details).toMatchObject({
        seconds: 450_000 / 44_100,
        sampleRate: 44_100,
        clippedSamples: 0,
        model: { name: 'tiny-band-unet-5' },
      })
      expect(progress.at(-1)).toEqual({ stage: 'draw', progress: 1 })
      // The file's weights are gone: the second run uses those in memory.
      expect(second.outputs.vocals!.bytes).toBe(first.outputs.vocals!.bytes)
      const vocals = await readAudio(first.outputs.vocals!.path)
      const accompaniments = await readAudio(first.outputs.accompaniments!.path)
      for (const channel of [0, 1]) {
        expect(
          maxDifference(
            vocals.channels[channel]!.map((value, i) => value + accompaniments.channels[channel]![i]!),
            mixture[channel]!,
          ),
        ).toBeLessThan(1e-6)
      }
    } finally {
      await runner.close()
    }
  })

  it.each([
    ['flac', 'flac', 'audio/flac'],
    ['flac24', 'flac', 'audio/flac'],
    ['mp3', 'mp3', 'audio/mpeg'],
    ['24', 'wav', 'audio/wav'],
    ['aiff24', 'aiff', 'audio/aiff'],
  ])('writes what the job requests: %s', async (format, extension, contentType) => {
    const path = join(folder, 'short.wav')
    await writeWav(path, [noise(50_000, 1), noise(50_000, 2)], 44_100)
    const asked = await order(path, 'format-', 600, workflow, { format, pictures: true })
    const { outputs } = await run(usualRunner, asked)
    for (const stem of ['vocals', 'accompaniments']) {
      expect(outputs[stem]).toMatchObject({ fileName: `${stem}.${extension}`, contentType })
      expect((await readAudio(outputs[stem]!.path)).channels[0]!.length).toBe(50_000)
    }
    expect(outputs.vocalsWaveform).toMatchObject({ contentType: 'image/png' })
  })

  it('finds tempo and beats of the song if the job requests them', async () => {
    const path = join(folder, 'drums.wav')
    const drums = Float32Array.from({ length: 12 * 44_100 }, (_, i) => {
      const time = (i / 44_100) % 0.5
      return 0.5 * Math.cos(2 * Math.PI * 70 * time) * Math.exp(-time / 0.06)
    })
    await writeWav(path, [drums, drums], 44_100)
    const asked = await order(path, 'analysis-', 600, workflow, { analysis: true })
    const { outputs } = await run(usualRunner, asked)
    expect(outputs.analysis).toMatchObject({ fileName: 'analysis.json', contentType: 'application/json' })
    const { tempo, beats } = JSON.parse(await readFile(outputs.analysis!.path, 'utf8')) as {
      tempo: { bpm: number }
      beats: number[]
    }
    expect([Math.round(tempo.bpm), beats.length > 20]).toEqual([120, true])
  })

  it('names the command that pulls a missing model', async () => {
    const path = join(folder, 'any.wav')
    await writeWav(path, [noise(1000, 1)], 44_100)
    const absent = stemsWorkflow({ model: 'kim-vocal-2' })
    const runner = processRunner({ resolve: () => absent, environment: { STEMWORK_MODELS: join(folder, 'no-models') } })
    try {
      await expect(run(runner, await order(path, 'absent-', 600, absent))).rejects.toMatchObject({
        code: 'MODEL_UNAVAILABLE',
        message: expect.stringContaining('stemwork models pull kim-vocal-2'),
      })
    } finally {
      await runner.close()
    }
  })

  it("uses the job's model if the host allows it", async () => {
    const path = join(folder, 'allowed.wav')
    await writeWav(path, [noise(20_000, 1), noise(20_000, 2)], 44_100)
    const inputUrl = 'https://example.com/a.wav'
    const open = stemsWorkflow({ model: 'kim-vocal-2', allowedModels: ['embedded', 'htdemucs'] })
    expect(open.params.safeParse({ inputUrl, model: 'htdemucs' }).success).toBe(true)
    expect(open.params.safeParse({ inputUrl, model: 'scnet' }).error?.issues[0]).toMatchObject({
      path: ['model'],
      message: expect.stringContaining('"embedded"|"htdemucs"'),
    })
    expect(workflow.params.safeParse({ inputUrl, model: 'embedded' }).success).toBe(false)
    const runner = processRunner({ resolve: () => open })
    try {
      const asked = await order(path, 'allowed-', 600, open, { model: 'embedded' })
      const { details } = await run(runner, asked)
      expect(details.model).toMatchObject({ name: 'tiny-band-unet-5', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) })
    } finally {
      await runner.close()
    }
  })

  it('may have other stems, as files with their names', async () => {
    expect(stemsWorkflow({ stems: 4 }).id).toBe('service/stems-4')
    expect(
      Object.values(stemsWorkflow({ stems: 4, format: 'mp3' }).outputs({})).map(({ fileName }) => fileName),
    ).toEqual(['vocals.mp3', 'drums.mp3', 'bass.mp3', 'other.mp3'])
    const karaoke = stemsWorkflow({
      id: 'service/karaoke',
      name: 'Karaoke',
      description: 'Only the accompaniments.',
      stems: ['accompaniments'],
      // A small network: WebAssembly takes seconds for the embedded one.
      model: await writeModel(
        join(folder, 'half'),
        maskNetwork(() => 0.5),
      ),
      runtime: 'wasm',
    })
    expect(Object.keys(karaoke.outputs({}))).toEqual(['accompaniments'])
    const path = join(folder, 'karaoke.wav')
    await writeWav(path, [noise(20_000, 1), noise(20_000, 2)], 44_100)
    const runner = processRunner({ resolve: () => karaoke })
    try {
      const { outputs, details } = await run(runner, await order(path, 'karaoke-', 600, karaoke))
      expect(details.runtime).toBe('wasm')
      expect((await readAudio(outputs.accompaniments!.path)).channels[0]!.length).toBe(20_000)
    } finally {
      await runner.close()
    }
  })

  it.skipIf(process.platform === 'darwin')('says in the details if another execution provider was used', async () => {
    const path = join(folder, 'provider.wav')
    await writeWav(path, [noise(20_000, 1), noise(20_000, 2)], 44_100)
    const accelerated = stemsWorkflow({ provider: 'coreml' })
    const runner = processRunner({ resolve: () => accelerated })
    try {
      const { details } = await run(runner, await order(path, 'provider-', 600, accelerated))
      expect(details.warnings).toEqual([expect.stringContaining('coreml could not be used')])
      expect(details.hint).toContain('stemwork models pull recommended')
      expect(details.runtime).toBe('native')
    } finally {
      await runner.close()
    }
  })

  it("reports audio that is too long as the client's error", async () => {
    const path = join(folder, 'long.wav')
    await writeWav(path, [noise(100_000)], 44_100)
    await expect(run(usualRunner, await order(path, 'long-', 1))).rejects.toMatchObject({
      code: 'BAD_INPUT',
      reason: 'too_long',
    })
  })
})
