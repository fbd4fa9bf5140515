import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { policyOf } from '../../../src/core/engine/dispatch/attempt/policy.js'
import { runSteps } from '../../../src/core/engine/dispatch/attempt/run-steps.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { resolveEngineOptions } from '../../../src/core/engine/options.js'
import type {
  KeptStep,
  RunOptions,
  WorkOrder,
  WorkProgress,
  WorkResult,
} from '../../../src/core/engine/ports/runner.js'
import type { Step, Workflow } from '../../../src/core/engine/workflow/workflow.js'
import { recordingLogger } from '../../engine/harness.js'
import { folderOfEachTest } from '../../temporary-folder.js'

const directory = folderOfEachTest()

const song = { path: '/song.mp3', bytes: 9, name: 'Song.mp3' }
const limits = { maxAudioSeconds: 1 }
const trace = { traceparent: 'trace' }
const parts = { parts: [], afterMs: 1, everyMs: 2, maxBytes: 3 }
const ofStep = { store: async () => {} }

/** Splits a song into two words, and marks the first word. */
function steps({ mayFail = false } = {}): Step[] {
  const split = {
    name: 'split',
    inputs: { song: { name: 'inputUrl' } },
    workflow: { id: 'test/split', module: { url: 'file:///split.js', settings: { n: 1 } } },
    params: () => ({ words: 2 }),
    mayFail,
  }
  const mark = {
    name: 'mark',
    inputs: {
      word: { step: 'split', name: 'first' },
      second: { step: 'split', name: 'second' },
      none: { step: 'split', name: 'none' },
    },
    workflow: { id: 'test/mark', module: { url: 'file:///mark.js' } },
    params: ({ mark: given }: { mark?: unknown }) => ({ with: given }),
    mayFail,
  }
  return [split, mark] as unknown as Step[]
}

interface Made {
  files?: Record<string, object>
  details?: Record<string, unknown>
}

/** @param work returns what a step's workflow makes of its order */
async function run(
  work: (order: WorkOrder) => Made,
  given: Step[] = steps(),
  signal = new AbortController().signal,
  maxAttempts = 1,
) {
  const orders: WorkOrder[] = []
  const options: RunOptions[] = []
  const saved: KeptStep[] = []
  const progress: WorkProgress[] = []
  const asked: unknown[][] = []
  const { logger, lines } = recordingLogger()
  const runner = {
    async run(order: WorkOrder, runOptions: RunOptions) {
      orders.push(order)
      options.push(runOptions)
      const { files = {}, details = {} } = work(order)
      const outputs: Record<string, object> = {}
      for (const [name, facts] of Object.entries(files)) {
        const path = join(order.directory, `${name}.txt`)
        await writeFile(path, name)
        outputs[name] = { path, bytes: name.length, contentType: 'text/plain', fileName: `${name}.txt`, ...facts }
      }
      return { outputs, details }
    },
  }
  const workflow = {
    params: z.looseObject({}),
    outputs: () => ({ one: { fileName: 'one.txt', contentType: 'text/plain' } }),
    stages: given.map(({ name }) => ({ name })),
  } as unknown as Workflow
  const outputs = { one: { step: 'mark', name: 'marked' }, extra: { step: 'split', name: 'second' } }
  const whole = { workflow: 'test/whole', module: null, settings: null, params: { mark: '!' } }
  const order = { jobId: 'job', ...whole, inputs: { inputUrl: song }, directory, limits, trace }
  const policy = { maxAttempts, retryDelayMs: 0 }
  const ports = {
    runner,
    logger,
    policy: ({ name }: Step) => policyOf(name, policy, resolveEngineOptions({})),
    checkpoint: async (...args: unknown[]) => (asked.push(args), { host: ofStep, checkpoint: parts }),
  } as unknown as Parameters<typeof runSteps>[3]
  const host = { save: async (step: KeptStep) => (saved.push(step), step.files), finished: async () => undefined }
  const result = await runSteps(workflow, { steps: given, outputs }, order, ports, {
    signal,
    onProgress: (made) => void progress.push(made),
    steps: host,
  }).catch((error: unknown) => ({ error, outputs: {} as WorkResult['outputs'], details: {} }))
  return { result, orders, options, saved, progress, asked, lines }
}

const both = ({ workflow }: WorkOrder): Made =>
  workflow === 'test/split'
    ? { files: { first: { downloadName: 'First.txt' }, second: {} }, details: { warnings: ['quiet', 7], words: 2 } }
    : { files: { marked: {} } }

test('each step gets an order of its own, with the files of those before it', async () => {
  const { orders, options, asked, saved } = await run(both)
  const folders = orders.map((order) => order.directory)
  expect(folders.every((folder) => folder.startsWith(directory))).toBe(true)
  const shared = { jobId: 'job', limits, trace, checkpoint: parts }
  const path = (name: string) => join(folders[0] ?? '', name)
  const [split, mark] = [
    { workflow: 'test/split', settings: { n: 1 }, params: { words: 2 }, inputs: { song } },
    {
      workflow: 'test/mark',
      settings: null,
      params: { with: '!' },
      inputs: {
        word: { path: path('first.txt'), bytes: 5, name: 'First.txt' },
        second: { path: path('second.txt'), bytes: 6, name: 'second.txt' },
      },
    },
  ]
  expect(orders).toEqual([
    { ...shared, ...split, module: 'file:///split.js', directory: folders[0] },
    { ...shared, ...mark, module: 'file:///mark.js', directory: folders[1] },
  ])
  expect(options.map(({ checkpoint }) => checkpoint)).toEqual([ofStep, ofStep])
  // A step is identified by its workflow, settings, params and the sizes of its inputs, in every release.
  const version = (...of: unknown[]) => createHash('sha256').update(JSON.stringify(of)).digest('hex').slice(0, 32)
  const versions = [
    version('test/split', { n: 1 }, { words: 2 }, [['song', 9]]),
    version('test/mark', null, { with: '!' }, [
      ['word', 5],
      ['second', 6],
    ]),
  ]
  expect(saved.map((step) => step.version)).toEqual(versions)
  expect(asked).toEqual([
    [folders[0], `split-${versions[0]}`],
    [folders[1], `mark-${versions[1]}`],
  ])
})

test('the composition has the files of its outputs, the details of all steps, and their warnings', async () => {
  const { result, progress, orders } = await run(both)
  const file = (name: string) => ({
    bytes: name.length,
    contentType: 'text/plain',
    path: expect.stringContaining(name),
  })
  expect(result.outputs).toEqual({
    one: { ...file('marked'), fileName: 'one.txt' },
    extra: { ...file('second'), fileName: 'second.txt' },
  })
  expect(dirname(result.outputs.extra?.path ?? '')).toBe(orders[0]?.directory)
  expect(result.details).toEqual({
    steps: { split: { warnings: ['quiet', 7], words: 2 }, mark: {} },
    warnings: ['split: quiet', 'split: 7'],
  })
  expect(progress.map(({ stage, progress: part }) => [stage, part])).toEqual([
    ['split', 0],
    ['split', 0.5],
    ['mark', 0.5],
    ['mark', 1],
  ])
})

test('steps that make no files and no failures give an empty result', async () => {
  expect((await run(() => ({}))).result).toEqual({ outputs: {}, details: { steps: { split: {}, mark: {} } } })
})

test('a step that may fail skips those that need it', async () => {
  const failing = () => {
    throw new Error('broken')
  }
  const { result, lines, orders } = await run(failing, steps({ mayFail: true }))
  expect(result).toMatchObject({ error: { message: 'broken' } })
  expect(orders).toHaveLength(1)
  expect(lines.map(({ level, fields }) => [level, fields.step])).toEqual([['warn', 'split']])
  const [split, mark] = steps({ mayFail: true })
  const alone = { ...split!, name: 'alone' }
  const half = await run((order) => (order.params.words ? both(order) : failing()), [split!, mark!, alone])
  expect(half.result.details).toMatchObject({ failed: { mark: { code: 'INTERNAL_ERROR', reason: null } } })
  const needing = await run(
    (order) => (orders.length > 0 && order.workflow === 'test/mark' ? { files: { marked: {} } } : failing()),
    [
      alone,
      { ...mark!, inputs: { song: { step: undefined, name: 'inputUrl' } } },
      { ...mark!, name: 'after', inputs: { word: { step: 'alone', name: 'first' } } },
    ],
  )
  expect(needing.result.details).toMatchObject({
    failed: { after: { code: 'INTERNAL_ERROR', reason: null, message: expect.stringContaining('"alone"') } },
  })
  const strict = await run(failing)
  expect([strict.result, strict.lines]).toMatchObject([{ error: { message: 'broken' } }, []])
})

test('after its signal no step begins, and none counts as failed', async () => {
  for (const mayFail of [false, true]) {
    const stop = new AbortController()
    const stopped = new Error('canceled')
    const { result, orders } = await run((order) => (stop.abort(stopped), both(order)), steps({ mayFail }), stop.signal)
    expect(result).toMatchObject({ error: stopped })
    expect(orders).toHaveLength(1)
  }
  const stop = new AbortController()
  const dying = await run(
    () => {
      stop.abort(new Error('canceled'))
      throw new Error('killed')
    },
    steps({ mayFail: true }),
    stop.signal,
  )
  expect([dying.result, dying.lines]).toMatchObject([{ error: { message: 'canceled' } }, []])
})

test('a step that was not run says why the one that it needs failed', async () => {
  const reasons = async (error: Error) => {
    const [split, mark] = steps({ mayFail: true })
    const made = (order: WorkOrder): Made => {
      if (order.workflow === 'test/split') throw error
      return { files: { marked: {} }, details: { warnings: ['quiet'] } }
    }
    const alone = { ...mark!, inputs: { word: { step: undefined, name: 'inputUrl' } } }
    const { result } = await run(made, [split!, alone, { ...mark!, name: 'after' }])
    expect(result.details).toMatchObject({ warnings: ['mark: quiet'] })
    const { failed } = result.details as { failed: Record<string, { code: string; reason: unknown }> }
    return [failed.split, failed.after].map((each) => [each?.code, each?.reason])
  }
  const badInput = new StemworkError('BAD_INPUT', 'no audio', { reason: 'no_audio' as never })
  expect(await reasons(badInput)).toEqual(Array.from({ length: 2 }, () => ['BAD_INPUT', 'no_audio']))
  expect(await reasons(new Error('broken'))).toEqual(Array.from({ length: 2 }, () => ['INTERNAL_ERROR', null]))
})

test('with a signal that has fired, not even the first step is looked at', async () => {
  const { result, orders, progress } = await run(both, steps(), AbortSignal.abort(new Error('canceled')))
  expect(result).toMatchObject({ error: { message: 'canceled' } })
  expect([orders, progress]).toEqual([[], []])
})

test('a step that is tried again says why', async () => {
  const failures = [new Error('broken')]
  const made = (order: WorkOrder) => {
    const failure = failures.pop()
    if (failure) throw failure
    return both(order)
  }
  const { result, lines } = await run(made, steps(), undefined, 2)
  expect(Object.keys(result.outputs)).toEqual(['one', 'extra'])
  expect(lines).toMatchObject([{ level: 'warn', fields: { jobId: 'job', step: 'split', delayMs: 0 } }])
})
