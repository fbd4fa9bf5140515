import { beforeEach, expect, test } from 'vitest'
import { AttemptSpans } from '../../../src/core/engine/dispatch/attempt/attempt-spans.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import type { KeptStep } from '../../../src/core/engine/ports/runner.js'
import { noTracing, type SpanOrder, type Tracing } from '../../../src/core/engine/ports/tracing.js'

const trace = { traceparent: 'of the job' }
const job = {
  id: 'job',
  app: 'host',
  workflow: 'sing',
  token: 2,
  lease: { owner: 'me' },
  trace,
} as unknown as JobRecord
const settled = { ...job, status: 'SUCCEEDED' } as JobRecord
const broken = new Error('broken')

/** Events in order. */
let log: unknown[]
let orders: SpanOrder[]
const tracing: Tracing = {
  begin(order) {
    orders.push(order)
    log.push(`begin ${order.name}`)
    return {
      context: { traceparent: order.name },
      set: (attributes) => void log.push(attributes),
      within(work) {
        log.push(`within ${order.name}`)
        return work()
      },
      end: (error) => void log.push(`end ${order.name}${error === undefined ? '' : `: ${(error as Error).message}`}`),
    }
  },
}

beforeEach(() => {
  log = []
  orders = []
})

test('an attempt is a consumer in the trace of its job, and says what it is about', () => {
  new AttemptSpans(tracing, job)
  expect(orders).toEqual([
    {
      name: 'process sing',
      kind: 'consumer',
      parent: trace,
      attributes: {
        'messaging.system': 'stemwork',
        'messaging.destination.name': 'sing',
        'messaging.message.id': 'job',
        'stemwork.app': 'host',
        'messaging.operation.name': 'process',
        'messaging.operation.type': 'process',
        'stemwork.attempt': 2,
        'stemwork.worker': 'me',
      },
    },
  ])
  new AttemptSpans(tracing, { ...job, lease: null })
  expect(orders[1]!.attributes).toMatchObject({ 'stemwork.worker': '' })
})

test('its span ends with the status of the job', async () => {
  expect(await new AttemptSpans(tracing, job).whole(async () => settled)).toBe(settled)
  expect(log).toEqual([
    'begin process sing',
    'within process sing',
    { 'stemwork.job.status': 'SUCCEEDED' },
    'end process sing',
  ])
  log = []
  expect(await new AttemptSpans(tracing, job).whole(async () => undefined)).toBeUndefined()
  expect(log).toContainEqual({ 'stemwork.job.status': 'lost' })
})

test('its span ends with the error that it throws, or with why it failed, except at a shutdown', async () => {
  await expect(new AttemptSpans(tracing, job).whole(() => Promise.reject(broken))).rejects.toBe(broken)
  expect(log.at(-1)).toBe('end process sing: broken')
  const lastAfter = async (cause: unknown) => {
    const spans = new AttemptSpans(tracing, job)
    spans.fail(cause)
    await spans.whole(async () => settled)
    return log.at(-1)
  }
  expect(await lastAfter(broken)).toBe('end process sing: broken')
  expect(await lastAfter(new StemworkError('TIMEOUT', 'too long'))).toBe('end process sing: too long')
  expect(await lastAfter(undefined)).toBe('end process sing')
  expect(await lastAfter(new StemworkError('SHUTTING_DOWN', 'later'))).toBe('end process sing')
})

test('a step is a child of the attempt', async () => {
  expect(await new AttemptSpans(tracing, job).step('fetch', async () => 7)).toBe(7)
  expect(orders[1]).toEqual({ name: 'fetch', kind: 'internal', parent: { traceparent: 'process sing' } })
  expect(log.at(-1)).toBe('end fetch')
  orders = []
  await new AttemptSpans(
    { begin: (order) => (orders.push(order), noTracing.begin(order)) },
    { ...job, trace: null },
  ).step('fetch', async () => 7)
  expect(orders[1]!.parent).toBeNull()
})

test('each stage of the run has a span of its own, which ends with the next stage or the run', async () => {
  const result = await new AttemptSpans(tracing, job).run(async (context, onStage) => {
    expect(context).toEqual({ traceparent: 'run' })
    for (const stage of ['decode', 'decode', 'sing']) onStage(stage)
    return 'song'
  })
  expect(result).toBe('song')
  expect(log.filter((line) => !String(line).startsWith('within'))).toEqual([
    'begin process sing',
    'begin run',
    'begin stage decode',
    'end stage decode',
    'begin stage sing',
    'end stage sing',
    'end run',
  ])
  expect(orders.at(-1)).toEqual({
    name: 'stage sing',
    kind: 'internal',
    parent: { traceparent: 'run' },
    attributes: { 'stemwork.stage': 'sing' },
  })
})

test('a run that fails ends its stage with the error; it may fail or end before the first stage', async () => {
  const spans = new AttemptSpans(tracing, job)
  const failing = spans.run((_, onStage) => {
    onStage('decode')
    return Promise.reject(broken)
  })
  await expect(failing).rejects.toBe(broken)
  expect(log.slice(-2)).toEqual(['end stage decode: broken', 'end run: broken'])
  await expect(spans.run(() => Promise.reject(broken))).rejects.toBe(broken)
  expect(await spans.run(async () => 1)).toBe(1)
})

test('each try of a step that has ended has a span in that of the run, even if it is not kept', async () => {
  const spans = new AttemptSpans(tracing, job)
  const step = { name: 'sing', state: 'done', startedAt: 5, attempts: 2, error: null } as unknown as KeptStep
  const order = (parent: object | null, name = 'sing') => ({
    name: `step ${name}`,
    kind: 'internal',
    parent,
    startedAt: 5,
    attributes: { 'stemwork.step': name, 'stemwork.step.attempt': 2 },
  })
  spans.ended(step)
  expect(orders.at(-1)).toEqual(order(null))
  await spans.run(async () => {
    spans.ended({ ...step, name: 'night', state: 'waiting' })
    const files = { song: { path: '/song', bytes: 1 } }
    expect(await spans.unkeptSteps.save({ ...step, files })).toBe(files)
  })
  expect(orders.at(-1)).toEqual(order({ traceparent: 'run' }))
  expect(orders.map(({ name }) => name)).toEqual(['process sing', 'step sing', 'run', 'step sing'])
  expect(await spans.unkeptSteps.finished('sing')).toBeUndefined()
  spans.ended({ ...step, error: { code: 'TIMEOUT', message: 'too long' } })
  expect(log.at(-1)).toBe('end step sing: too long')
})

test('without a trace, the stages and steps of the run belong to no other', async () => {
  const begun: SpanOrder[] = []
  const spans = new AttemptSpans(
    { begin: (order) => (begun.push(order), noTracing.begin(order)) },
    { ...job, trace: null },
  )
  await spans.run(async (_, onStage) => onStage('decode'))
  spans.ended({ name: 'sing', state: 'done', startedAt: 5, attempts: 1, error: null } as unknown as KeptStep)
  expect(begun.slice(-2).map(({ name, parent }) => [name, parent])).toEqual([
    ['stage decode', null],
    ['step sing', null],
  ])
})
