import { once } from 'node:events'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { localFile } from '../../../src/core/engine/intake/local-file.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import type { Runner } from '../../../src/core/engine/ports/runner.js'
import { inlineRunner } from '../../../src/core/engine/runner/inline-runner.js'
import { defineWorkflow, type StageContext } from '../../../src/core/engine/workflow/workflow.js'
import { gate, recordingLogger, testEngine, textWorkflow } from '../harness.js'
import { temporaryFolder } from '../../temporary-folder.js'

const folder = temporaryFolder()
beforeAll(async () => {
  await writeFile(join(folder, 'song'), 'la')
})

const withInput = (run: (context: StageContext) => Promise<void>) =>
  defineWorkflow({
    id: 'test/input',
    name: 'Input',
    description: '',
    params: z.object({ inputUrl: z.string() }),
    inputs: ['inputUrl'],
    outputs: { text: { fileName: 'text.txt', contentType: 'text/plain' } },
    stages: [{ name: 'work', run }],
  })

test('a job shows its stage and progress: fetching, its own stages, and publishing', async () => {
  const [fetched, worked, published] = [gate(), gate(), gate()]
  const blobs = memoryBlobs()
  const slow: BlobStore = {
    ...blobs,
    get: async (...args) => fetched.opened.then(() => blobs.get(...args)),
    put: async (key, ...rest) => {
      if (key.startsWith('results/')) await published.opened
      return blobs.put(key, ...rest)
    },
  }
  const workflow = withInput(async ({ progress, outputPath }) => {
    progress(0.5)
    await worked.opened
    await writeFile(outputPath('text'), 'la')
  })
  const { engine, until } = testEngine(workflow, { dispatch: { progressIntervalMs: 10 } }, { blobs: slow })
  const shown: [stage: string | null, progress: number][] = []
  engine.on('job.progressed', ({ job }) => void shown.push([job.stage, Math.round(1000 * job.progress) / 1000]))
  await engine.start()
  const { job } = await engine.submit({
    app: 'app',
    workflow: workflow.id,
    params: {},
    inputs: { inputUrl: localFile(join(folder, 'song')) },
  })
  await expect.poll(() => shown.at(-1)).toEqual(['fetch', 0])
  fetched.open()
  await expect.poll(() => shown.at(-1)).toEqual(['work', 0.51])
  worked.open()
  await expect.poll(() => shown.at(-1)).toEqual(['publish', 0.97])
  published.open()
  expect(await until(job.id, 'SUCCEEDED')).toMatchObject({ progress: 1 })
  await engine.close()
})

test('a job that is deleted while it runs counts as if it were canceled', async () => {
  const workflow = withInput(async ({ signal }) => void (await once(signal, 'abort')))
  const settings = { quota: { bytes: 100 }, dispatch: { progressIntervalMs: 10 } }
  const { engine, parts } = testEngine(workflow, settings)
  const entries: unknown[] = []
  engine.on('usage.recorded', ({ entry }) => void entries.push(entry))
  await engine.start()
  const inputs = { inputUrl: localFile(join(folder, 'song')) }
  const { job } = await engine.submit({ app: 'app', workflow: workflow.id, params: {}, inputs })
  await expect.poll(async () => (await parts.jobs.get(job.id))?.lease?.used?.bytes).toBe(2)
  await engine.delete(job.id)
  expect((await engine.limits('app')).used).toMatchObject({ jobs: 1, bytes: 2 })
  expect(entries).toMatchObject([{ jobId: job.id, result: 'FAILED', error: 'CANCELED', bytes: 2 }])
  expect(await engine.usageEntries({ from: 0, to: Date.now() })).toEqual(entries)
  await engine.close()
})

test('a run that fails while it publishes leaves neither results nor files of its work', async () => {
  const blobs = memoryBlobs()
  const scratchDirectory = join(folder, 'scratch')
  const broken: BlobStore = {
    ...blobs,
    put: async (key, ...rest) => {
      if (key.endsWith('second.txt')) throw new Error('no room')
      return blobs.put(key, ...rest)
    },
  }
  const workflow = defineWorkflow({
    id: 'test/two',
    name: 'Two',
    description: '',
    params: z.object({}),
    inputs: [],
    outputs: Object.fromEntries(
      ['first', 'second'].map((name) => [name, { fileName: `${name}.txt`, contentType: 'text/plain' }]),
    ),
    stages: [
      {
        name: 'write',
        run: async ({ outputPath }) => {
          for (const name of ['first', 'second']) await writeFile(outputPath(name), name)
        },
      },
    ],
  })
  const { logger, lines } = recordingLogger()
  const { engine, submit } = testEngine(
    workflow,
    { logger, scratchDirectory, dispatch: { maxAttempts: 1 } },
    { blobs: broken },
  )
  expect(await engine.run((await submit()).id)).toMatchObject({ status: 'FAILED', error: { code: 'INTERNAL_ERROR' } })
  const kept: string[] = []
  for await (const { key } of blobs.list('results/')) kept.push(key)
  expect(kept).toEqual([])
  const [own] = await readdir(scratchDirectory)
  expect(await readdir(join(scratchDirectory, own!))).toEqual([])
  expect(lines.filter(({ level }) => level === 'error' || level === 'warn')).toHaveLength(1)
  await engine.close()
  expect(await readdir(scratchDirectory)).toEqual([])
})

test('a job that fails because of the set-up of this process has it checked again; other failures do not', async () => {
  for (const [code, again] of [
    ['MISSING_DEPENDENCY', true],
    ['BAD_INPUT', false],
  ] as const) {
    let looks = 0
    const workflow = { ...textWorkflow(), module: { url: 'file:///text.mjs', settings: {} } }
    const runner: Runner = {
      ...inlineRunner({ resolve: () => workflow }),
      run: () => Promise.reject(new StemworkError(code, 'why', { retryable: false })),
      prepare: async () => {
        looks++
        return {}
      },
    }
    const { engine, submit, until } = testEngine(workflow, {}, { runner })
    await engine.start()
    await engine.ready()
    const before = looks
    await until((await submit()).id, 'FAILED')
    await engine.ready()
    expect(looks > before).toBe(again)
    await engine.close()
  }
})
