import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { fsBlobs } from '../../../src/adapters/blobs/fs/index.js'
import { policyOf } from '../../../src/core/engine/dispatch/attempt/policy.js'
import { runSteps } from '../../../src/core/engine/dispatch/attempt/run-steps.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { localFile } from '../../../src/core/engine/intake/local-file.js'
import { type EngineSettings, resolveEngineOptions } from '../../../src/core/engine/options.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import type { Runner, WorkProgress } from '../../../src/core/engine/ports/runner.js'
import { inlineRunner } from '../../../src/core/engine/runner/inline-runner.js'
import type { WorkflowPolicy } from '../../../src/core/engine/workflow/policy.js'
import { type Composition, composeWorkflow } from '../../../src/core/engine/workflow/composition.js'
import { defineWorkflow, type StageContext, type Workflow } from '../../../src/core/engine/workflow/workflow.js'
import { type TestEngine, testEngine, textOf } from '../harness.js'

const twoWords = fileURLToPath(new URL('../fixtures/two-words.txt', import.meta.url))
const inputUrl = z.url()
const songUrl = 'https://example.org/song.txt'
const text = { contentType: 'text/plain' }

/** Splits "a b" into two files. */
function splitter(run: (context: StageContext) => Promise<void> | void = () => {}): Workflow {
  return defineWorkflow({
    id: 'test/split',
    name: 'Split',
    description: '',
    params: z.strictObject({ inputUrl, only: z.enum(['first', 'both']).default('both') }),
    outputs: ({ only }) => ({
      first: { fileName: 'part.txt', ...text },
      second: only === 'both' ? { fileName: 'part.txt', ...text } : undefined,
    }),
    stages: [
      {
        name: 'split',
        async run(context) {
          await run(context as unknown as StageContext)
          const words = (await readFile(context.inputs.inputUrl.path, 'utf8')).split(' ')
          await writeFile(context.outputPath('first'), words[0] ?? '')
          if (context.params.only === 'both') await writeFile(context.outputPath('second'), words[1] ?? '')
          context.detail('words', words.length)
        },
      },
    ],
  })
}

/** Writes the input between marks. */
function marker(run: (context: StageContext<{ mark: string }>) => Promise<void> | void = () => {}): Workflow {
  return defineWorkflow({
    id: 'test/mark',
    name: 'Mark',
    description: '',
    params: z.strictObject({ inputUrl, mark: z.string().max(1).default('*') }),
    outputs: { marked: { fileName: 'part.txt', ...text } },
    stages: [
      {
        name: 'mark',
        async run(context) {
          await run(context)
          context.progress(0.5)
          const content = await readFile(context.inputs.inputUrl.path, 'utf8')
          await writeFile(context.outputPath('marked'), `${context.params.mark}${content}${context.params.mark}`)
        },
      },
    ],
  })
}

function composition(changes: Partial<Composition> = {}): Composition {
  return {
    id: 'test/composed',
    name: 'Composed',
    description: 'Splits and marks.',
    params: { mark: 'one.mark' },
    steps: {
      // Declared before the step on which it depends.
      one: { workflow: 'test/mark', inputs: { inputUrl: 'split.first' } },
      two: { workflow: 'test/mark', inputs: { inputUrl: 'split.second' }, params: { mark: '-' } },
      split: { workflow: 'test/split', weight: 2 },
    },
    outputs: { one: 'one.marked', two: 'two.marked' },
    ...changes,
  }
}

const plain = () => [splitter(), marker()]

async function run(workflow: Workflow, params: Record<string, unknown> = {}, settings: EngineSettings = {}) {
  const tested = testEngine(workflow, { dispatch: { maxAttempts: 2 }, ...settings })
  const { job } = await tested.engine.submit({
    app: 'app',
    workflow: workflow.id,
    params,
    inputs: { inputUrl: localFile(twoWords) },
  })
  const done = await tested.engine.run(job.id)
  if (!done) throw new Error('The job has not ended.')
  const files: Record<string, string> = {}
  for (const [name, { key }] of Object.entries(done.outputs ?? {})) {
    const chunks = []
    for await (const chunk of (await tested.parts.blobs.get(key))!.body) chunks.push(chunk)
    files[name] = Buffer.concat(chunks).toString()
  }
  await tested.engine.close()
  return { done, files }
}

describe('a composed workflow', () => {
  test('declared in JSON gives each step the outputs of those that it needs, and its own params', async () => {
    const json = JSON.parse(JSON.stringify(composition())) as Composition
    const { done, files } = await run(composeWorkflow(json, { workflows: plain() }), { mark: '!' })
    expect(done.status).toBe('SUCCEEDED')
    expect(files).toEqual({ one: '!left!', two: '-right-' })
    // The steps' files share a name; those of the whole job are named after its outputs.
    expect(done.outputs).toMatchObject({ one: { fileName: 'one.txt' }, two: { fileName: 'two.txt' } })
    expect(done.details).toEqual({ steps: { split: { words: 2 }, one: {}, two: {} } })
  })

  test('may publish a file of a step under several names, also where a store takes the file itself', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'stemwork-composition-'))
    onTestFinished(() => rm(directory, { recursive: true }))
    const outputs = { one: 'one.marked', again: 'one.marked', two: 'two.marked', last: 'one.marked' }
    const workflow = composeWorkflow(composition({ outputs }), { workflows: plain() })
    const { engine, parts } = testEngine(workflow, {}, { blobs: fsBlobs({ directory }) })
    const inputs = { inputUrl: localFile(twoWords) }
    const { job } = await engine.submit({ app: 'app', workflow: workflow.id, params: {}, inputs })
    const done = await engine.run(job.id)
    expect(done?.status, done?.failure ?? '').toBe('SUCCEEDED')
    const texts = await Promise.all(
      Object.entries(done?.outputs ?? {}).map(async ([name, { key }]) => [name, await textOf(parts.blobs, key)]),
    )
    const [one, two] = ['*left*', '-right-']
    expect(Object.fromEntries(texts)).toEqual({ one, again: one, two, last: one })
    await engine.close()
  })

  test('uses the processor time of all its steps', async () => {
    const parts = plain()
    const inChildren = parts.map((part) => ({ ...part, module: { url: 'file:///workflow.js', settings: {} } }))
    const workflow = composeWorkflow(composition(), { workflows: inChildren })
    const inner = inlineRunner({ resolve: (id) => parts.find((part) => part.id === id)! })
    const runner: Runner = {
      ...inner,
      run: (order, options) => {
        options.onUse?.(2)
        return inner.run({ ...order, module: null }, options)
      },
    }
    const tested = testEngine(workflow, {}, { runner })
    const inputs = { inputUrl: localFile(twoWords) }
    const { job } = await tested.engine.submit({ app: 'app', workflow: workflow.id, params: {}, inputs })
    const used = new Promise((resolve) =>
      tested.engine.on('usage.recorded', ({ entry }) => resolve(entry.processorSeconds)),
    )
    await tested.engine.run(job.id)
    expect(await used).toBe(2 * Object.keys(composition().steps).length)
    await tested.engine.close()
  })

  test('gives a step an optional input only if the step names it, or names none', async () => {
    const seen: Record<string, string[]> = {}
    const lister = (id: string) =>
      defineWorkflow({
        id,
        name: 'List',
        description: 'Lists its inputs.',
        params: z.strictObject({ inputUrl: z.url().optional(), voiceUrl: z.url().optional() }),
        inputs: ['inputUrl', 'voiceUrl'],
        outputs: { list: { fileName: 'list.txt', contentType: 'text/plain' } },
        stages: [
          {
            name: 'list',
            async run({ inputs, outputPath }) {
              seen[id] = Object.entries(inputs).flatMap(([name, file]) => (file ? [name] : []))
              await writeFile(outputPath('list'), '-')
            },
          },
        ],
      })
    const steps = {
      split: { workflow: splitter() },
      named: { workflow: lister('test/named'), inputs: { voiceUrl: 'split.first' } },
      unnamed: { workflow: lister('test/unnamed') },
    }
    const outputs = { named: 'named.list', unnamed: 'unnamed.list' }
    const { done } = await run(composeWorkflow(composition({ steps, outputs, params: {} })))
    expect(done.status).toBe('SUCCEEDED')
    expect(seen).toEqual({ 'test/named': ['voiceUrl'], 'test/unnamed': ['inputUrl'] })
  })

  test('repeats only the step that failed', async () => {
    const runs = { split: 0, mark: 0 }
    const workflows = [
      splitter(() => void runs.split++),
      marker(async ({ outputPath }) => {
        if (++runs.mark > 2) return
        await writeFile(outputPath('marked'), 'half')
        throw new Error('the disk was away')
      }),
    ]
    const given = composition({
      steps: { ...composition().steps, one: { ...composition().steps.one!, policy: { maxAttempts: 3 } } },
    })
    const { done, files } = await run(composeWorkflow(given, { workflows }))
    expect([done.status, done.attempts]).toEqual(['SUCCEEDED', 1])
    expect(files.one).toBe('*left*')
    expect(runs).toEqual({ split: 1, mark: 4 })
  })

  test('fails when a step has used up its attempts, or is refused its input at once', async () => {
    let tries = 0
    const steps = composition().steps
    const failing = (error: Error) => [
      splitter(),
      marker(() => {
        tries++
        throw error
      }),
    ]
    const given = composition({ steps: { ...steps, one: { ...steps.one!, policy: { maxAttempts: 2 } } } })
    const broken = await run(composeWorkflow(given, { workflows: failing(new Error('broken')) }))
    expect([broken.done.status, broken.done.error?.code, broken.done.attempts, tries]).toEqual([
      'FAILED',
      'INTERNAL_ERROR',
      2,
      4,
    ])
    tries = 0
    const refusal = new StemworkError('BAD_INPUT', 'That is no word.')
    const refused = await run(composeWorkflow(given, { workflows: failing(refusal) }))
    expect([refused.done.error?.message, refused.done.attempts, tries]).toEqual(['That is no word.', 1, 1])
  })

  test('ends a step that takes too long, and says which', async () => {
    const workflows = [
      splitter(),
      marker(
        ({ signal }) =>
          new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
      ),
    ]
    const steps = composition().steps
    const given = composition({ steps: { ...steps, one: { ...steps.one!, policy: { timeoutMs: 20 } } } })
    const { done } = await run(composeWorkflow(given, { workflows }))
    expect(done.error).toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('"one"') })
  })

  test("retries a step by its own policy or its workflow's; the policy of the host overrides both", async () => {
    let tries = 0
    const broken = marker(() => {
      tries++
      throw new Error('broken')
    })
    const attempts = async (own?: WorkflowPolicy, ofWorkflow?: WorkflowPolicy, host?: WorkflowPolicy) => {
      tries = 0
      const steps = composition().steps
      const given = composition({
        steps: { ...steps, one: { ...steps.one!, policy: own } },
        policy: { maxAttempts: 1 },
      })
      const workflows = [splitter(), { ...broken, policy: ofWorkflow }]
      const { done } = await run(composeWorkflow(given, { workflows }), {}, host && { policies: { 'test/mark': host } })
      expect([done.status, done.attempts]).toEqual(['FAILED', 1])
      return tries
    }
    // The default for all workflows of this engine is two.
    expect(await attempts()).toBe(2)
    expect(await attempts(undefined, { maxAttempts: 3 })).toBe(3)
    expect(await attempts({ maxAttempts: 4 }, { maxAttempts: 3 })).toBe(4)
    expect(await attempts({ maxAttempts: 4 }, { maxAttempts: 3 }, { maxAttempts: 5 })).toBe(5)
    expect(await attempts({ maxAttempts: 4, retryOn: ['TIMEOUT'] })).toBe(1)
  })

  test('repeats a step that took too long if its policy allows it', async () => {
    let tries = 0
    const timeoutMs = 600_000
    const slow = marker(async () => {
      if (++tries > 1) return
      vi.advanceTimersByTime(timeoutMs)
      await new Promise<never>(() => {})
    })
    const steps = composition().steps
    const policy = { timeoutMs, retryOn: ['TIMEOUT'] }
    const given = composition({ steps: { ...steps, one: { ...steps.one!, policy } } })
    // The next attempt has its full time, however slow the machine is.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true })
    onTestFinished(() => void vi.useRealTimers())
    const { done } = await run(
      composeWorkflow(given, { workflows: [splitter(), slow] }),
      {},
      { limits: { jobTimeoutMs: 2 * timeoutMs } },
    )
    expect([done.status, done.attempts, tries]).toEqual(['SUCCEEDED', 1, 3])
  })

  test('waits longer after each attempt at a step, as its policy says, until the job is canceled', async () => {
    const broken = marker(() => {
      throw new Error('broken')
    })
    const steps = composition().steps
    const run = async (policy: WorkflowPolicy, onWait: (engine: TestEngine['engine'], id: string) => unknown) => {
      const given = composition({
        steps: { ...steps, one: { ...steps.one!, policy: { ...policy, retryJitter: 0 } } },
        policy: { maxAttempts: 1 },
      })
      const workflow = composeWorkflow(given, { workflows: [splitter(), broken] })
      const waits: number[] = []
      const warn = (facts: object) => {
        if (!('delayMs' in facts && 'step' in facts)) return
        waits.push(Number(facts.delayMs))
        void onWait(tested.engine, job.id)
      }
      const tested = testEngine(workflow, { logger: { ...silentLogger, warn } })
      const inputs = { inputUrl: localFile(twoWords) }
      const { job } = await tested.engine.submit({ app: 'app', workflow: workflow.id, inputs })
      const done = await tested.engine.run(job.id)
      await tested.engine.close()
      return [done?.error?.code, waits]
    }
    const backOff = { maxAttempts: 5, retryDelayMs: 1, maxRetryDelayMs: 4 }
    expect(await run(backOff, () => {})).toEqual(['INTERNAL_ERROR', [1, 2, 4, 4]])
    const anHour = { retryDelayMs: 3_600_000, maxRetryDelayMs: 3_600_000 }
    expect(await run(anHour, (engine, id) => engine.cancel(id))).toEqual(['CANCELED', [3_600_000]])
  })

  test('continues without optional branches that failed, and says which did and why', async () => {
    const workflows = [
      splitter(),
      marker(({ params }) => {
        if (params.mark === '-') throw new StemworkError('BAD_INPUT', 'That is no word.', { reason: 'decode_failed' })
      }),
    ]
    const steps = composition().steps
    const given = composition({
      steps: {
        ...steps,
        two: { ...steps.two!, mayFail: true },
        three: { workflow: 'test/mark', inputs: { inputUrl: 'two.marked' }, mayFail: true },
      },
      outputs: { one: 'one.marked', two: 'two.marked', three: 'three.marked' },
    })
    const { done, files } = await run(composeWorkflow(given, { workflows }))
    expect(done.status).toBe('SUCCEEDED')
    expect(files).toEqual({ one: '*left*' })
    expect(done.details.failed).toEqual({
      two: {
        code: 'BAD_INPUT',
        title: expect.any(String),
        message: 'That is no word.',
        reason: 'decode_failed',
        retryable: false,
      },
      three: expect.objectContaining({ code: 'BAD_INPUT', message: expect.stringContaining('needs the step "two"') }),
    })
    // With nothing to publish, the job fails as the branch did.
    const nothing = composition({ steps: given.steps, outputs: { two: 'two.marked' } })
    expect((await run(composeWorkflow(nothing, { workflows }))).done.error).toMatchObject({
      message: 'That is no word.',
    })
  })

  test('weighs the progress of its steps', async () => {
    const workflow = composeWorkflow(composition(), { workflows: plain() })
    const directory = await mkdtemp(join(tmpdir(), 'stemwork-steps-'))
    const order = {
      jobId: 'job',
      workflow: workflow.id,
      module: null,
      settings: null,
      params: { inputUrl: songUrl },
      inputs: { inputUrl: { path: twoWords, bytes: 10 } },
      directory,
      limits: { maxAudioSeconds: 1 },
    }
    const seen: WorkProgress[] = []
    const runner = inlineRunner({ resolve: () => workflow })
    const run = {
      signal: new AbortController().signal,
      onProgress: (progress: WorkProgress) => void seen.push(progress),
    }
    const policy = () => policyOf(workflow.id, undefined, resolveEngineOptions({}))
    await runSteps(workflow, workflow.composition!, order, { runner, logger: silentLogger, policy }, run)
    await rm(directory, { recursive: true })
    expect(seen.map(({ stage, progress }) => `${stage} ${progress}`)).toEqual([
      'split 0',
      'split 0.5',
      'one 0.5',
      'one 0.625',
      'one 0.75',
      'two 0.75',
      'two 0.875',
      'two 1',
    ])
  })

  test('is refused before a job is accepted, when its params do not fit', async () => {
    const workflow = composeWorkflow(composition({ params: { mark: 'one.mark', only: 'split.only' } }), {
      workflows: plain(),
    })
    const tested = testEngine(workflow)
    const submit = (params: Record<string, unknown>) =>
      tested.engine.submit({ app: 'app', workflow: workflow.id, params: { inputUrl: songUrl, ...params } })
    await expect(submit({ mark: 'long' })).rejects.toMatchObject({
      code: 'INVALID_PARAMS',
      details: { issues: [{ path: 'params.mark' }] },
    })
    await expect(submit({ only: 'first' })).rejects.toThrow('the step split makes no "second" with these params')
    await expect(submit({ other: 1 })).rejects.toMatchObject({ code: 'INVALID_PARAMS' })
    await expect(submit({ inputUrl: 'song.txt' })).rejects.toMatchObject({ code: 'INVALID_PARAMS' })
    await expect(submit({ mark: '+' })).resolves.toBeDefined()
    await tested.engine.close()
    const described = z.toJSONSchema(workflow.params, { io: 'input' })
    expect(described).toMatchObject({
      required: ['inputUrl'],
      properties: { mark: { maxLength: 1 }, only: { enum: ['first', 'both'] } },
    })
  })

  const steps = composition().steps
  test.each<[Partial<Composition>, string]>([
    [{ steps: {} }, 'steps names none'],
    [{ outputs: {} }, 'outputs names none'],
    [{ outputs: { one: 'five.marked' } }, 'outputs.one names the step "five"'],
    [{ outputs: { one: 'marked' } }, 'must be "<step>.<name>"'],
    [{ params: { mark: 'one.marks' } }, 'test/mark has no param "marks"'],
    [{ params: { mark: 'five.mark' } }, 'params.mark names the step "five"'],
    [{ params: { inputUrl: 'one.mark' } }, 'params.inputUrl has the name of an input'],
    [{ steps: { ...steps, five: { workflow: 'test/none' } } }, 'names the workflow "test/none", which is not given'],
    [
      { steps: { ...steps, one: { workflow: 'test/mark', inputs: { inputUrl: 'five.marked' } } } },
      'needs the step "five"',
    ],
    [
      { steps: { ...steps, one: { workflow: 'test/mark', inputs: { inputUrl: 'song' } } } },
      'expected "<step>.<output>" or one of inputUrl',
    ],
    [
      { steps: { ...steps, one: { workflow: 'test/mark', inputs: { song: 'split.first' } } } },
      'is not an input of test/mark',
    ],
    [
      {
        steps: {
          one: { workflow: 'test/mark', inputs: { inputUrl: 'two.marked' } },
          two: { workflow: 'test/mark', inputs: { inputUrl: 'one.marked' } },
        },
      },
      'steps wait for each other: one -> two -> one',
    ],
    [
      { steps: { ...steps, split: { workflow: 'test/split', mayFail: true } } },
      'the step "one" needs "split", which may fail',
    ],
    [{ steps: { ...steps, one: { ...steps.one!, policy: { maxAttempts: 0 } } } }, 'steps.one.policy.maxAttempts'],
    [{ policy: { retryJitter: 2 } }, 'policy.retryJitter'],
  ])('that is %j is refused when it is created', (changes, message) => {
    expect(() => composeWorkflow(composition(changes), { workflows: plain() })).toThrow(message)
  })
})
