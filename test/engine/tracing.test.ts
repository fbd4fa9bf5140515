import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { memoryBlobs } from '../../src/adapters/memory.js'
import { StemworkError } from '../../src/core/engine/errors.js'
import { localFile } from '../../src/core/engine/intake/local-file.js'
import type { SpanOrder, Tracing } from '../../src/core/engine/ports/tracing.js'
import { composeWorkflow } from '../../src/core/engine/workflow/composition.js'
import { newWebhookSecret } from '../../src/core/engine/webhooks/signature.js'
import { stepsWorkflow, testEngine, textWorkflow } from './harness.js'

/** Numbers the spans and records how they began and ended. */
function recordingTracing() {
  const begun: (SpanOrder & { id: number })[] = []
  const ended: string[] = []
  const tracing: Tracing = {
    begin(order) {
      const id = begun.push({ ...order, id: begun.length + 1 })
      let hasEnded = false
      return {
        context: { traceparent: `00-${'a'.repeat(32)}-${String(id).padStart(16, '0')}-01` },
        set() {},
        within: (work) => work(),
        end(error) {
          if (!hasEnded) ended.push(`${order.name}${error === undefined ? '' : ` ${(error as Error).message}`}`)
          hasEnded = true
        },
      }
    },
  }
  return { tracing, begun, ended }
}

const idOf = (order: SpanOrder | undefined) => order?.parent && Number(order.parent.traceparent.split('-')[2])

describe('an attempt', () => {
  test('has a span for each of its steps and stages, below that of its submit', async () => {
    const { tracing, begun, ended } = recordingTracing()
    const { engine, submit } = testEngine(textWorkflow(), { tracing })
    await engine.run((await submit()).id)
    expect(begun.map((order) => [order.id, order.name, idOf(order)])).toEqual([
      [1, 'submit test/text', undefined],
      [2, 'process test/text', 1],
      [3, 'fetch', 2],
      [4, 'run', 2],
      [5, 'stage write', 4],
      [6, 'publish', 2],
    ])
    expect(ended).toEqual(['submit test/text', 'fetch', 'stage write', 'run', 'publish', 'process test/text'])
  })

  test('that fails is an error of each span that the error passed, and of no other', async () => {
    const { tracing, ended } = recordingTracing()
    const workflow = textWorkflow(() => {
      throw new StemworkError('BAD_INPUT', 'not audio')
    })
    const { engine, submit } = testEngine(workflow, { tracing })
    await engine.run((await submit()).id)
    expect(ended).toEqual([
      'submit test/text',
      'fetch',
      'stage write not audio',
      'run not audio',
      'process test/text not audio',
    ])
  })

  test('has a span for each try of a step, from its start, and none for steps that it did not run', async () => {
    const { tracing, begun, ended } = recordingTracing()
    let tries = 0
    const workflow = stepsWorkflow(async ({ step }) => {
      await step.run('first', async () => 1)
      await step.run('second', async () => {
        if (++tries === 1) throw new StemworkError('INTERNAL_ERROR', 'not yet', { retryable: true })
      })
    })
    const { engine, submit } = testEngine(workflow, { tracing })
    const done = await engine.run((await submit()).id)
    const steps = begun.filter(({ name }) => name.startsWith('step '))
    expect(steps.map(({ name, attributes }) => [name, attributes?.['stemwork.step.attempt']])).toEqual([
      ['step first', 1],
      ['step second', 1],
      ['step second', 2],
    ])
    expect(steps[0]?.startedAt).toBe(done?.steps[0]?.startedAt)
    expect(begun.filter((order) => idOf(order) === idOf(steps[0]))).toHaveLength(2)
    expect(ended).toContain('step second not yet')
    expect(begun.filter(({ name }) => name.startsWith('stage '))).toEqual([])
  })

  test.each([
    ['kept', true],
    ['not kept', false],
  ])('has the same for the steps of a composition that are %s', async (_, isKept) => {
    const { tracing, begun, ended } = recordingTracing()
    let tries = 0
    const flaky = textWorkflow(() => {
      if (++tries === 1) throw new StemworkError('INTERNAL_ERROR', 'not yet', { retryable: true })
    })
    const composed = composeWorkflow({
      id: 'test/composed',
      name: 'Composed',
      description: '',
      steps: { one: { workflow: flaky, policy: { maxAttempts: 2, retryDelayMs: 1 } } },
      outputs: { text: 'one.text' },
    })
    const blobs = { ...memoryBlobs(), traits: { scope: isKept ? ('shared' as const) : ('process' as const) } }
    const { engine } = testEngine(composed, { tracing }, { blobs })
    const inputs = { inputUrl: localFile(fileURLToPath(new URL('fixtures/two-words.txt', import.meta.url))) }
    const { job } = await engine.submit({ app: 'app', workflow: composed.id, params: {}, inputs })
    const done = await engine.run(job.id)
    expect([done?.status, done?.steps.length]).toEqual(['SUCCEEDED', isKept ? 1 : 0])
    const run = begun.find(({ name }) => name === 'run')
    const below = begun.filter((order) => idOf(order) === run?.id)
    expect(below.map(({ name, attributes }) => [name, attributes?.['stemwork.step.attempt']])).toEqual([
      ['step one', 1],
      ['step one', 2],
    ])
    expect(ended).toContain('step one not yet')
  })

  test('that is made again is a second one below the same submit', async () => {
    const { tracing, begun } = recordingTracing()
    let tries = 0
    const workflow = textWorkflow(() => {
      if (++tries === 1) throw new StemworkError('INTERNAL_ERROR', 'try again', { retryable: true })
    })
    const { engine, submit } = testEngine(workflow, { tracing })
    await engine.run((await submit()).id)
    const attempts = begun.filter(({ kind }) => kind === 'consumer')
    expect(attempts.map(idOf)).toEqual([1, 1])
    expect(attempts.map(({ attributes }) => attributes?.['stemwork.attempt'])).toEqual([1, 2])
  })
})

test('the jobs of a batch and its webhook belong to the span of its submit', async () => {
  const { tracing, begun } = recordingTracing()
  const settings = { tracing, fetch: { allowPrivate: true }, webhooks: { secret: newWebhookSecret() } }
  const { engine } = testEngine(textWorkflow(), settings)
  // The receiver's answer, or absence, does not matter: the try has a span.
  const webhook = { url: 'http://127.0.0.1:9/' }
  const jobs = [1, 2].map((number) => ({ workflow: 'test/text', params: { number } }))
  const { ids } = await engine.submitBatch({ app: 'app', name: 'album', jobs, webhook })
  for (const id of ids) await engine.run(id)
  await engine.sendWebhooks()
  const [submitted, ...later] = begun
  expect(submitted).toMatchObject({
    name: 'submit batch',
    kind: 'producer',
    attributes: { 'messaging.batch.message_count': 2, 'stemwork.batch': 'album' },
  })
  const below = later.filter((order) => idOf(order) === submitted?.id).map(({ name }) => name)
  expect(below).toEqual(['process test/text', 'process test/text', 'POST webhook'])
  await engine.close()
})

test('a value that is not a tracing is refused', () => {
  expect(() => testEngine(textWorkflow(), { tracing: {} as Tracing })).toThrow(/tracing.*openTelemetry\(\)/)
})
