import { expect, test } from 'vitest'
import { z } from 'zod'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { AttemptSpans } from '../../../src/core/engine/dispatch/attempt/attempt-spans.js'
import { runWorkflow } from '../../../src/core/engine/dispatch/attempt/attempt-run.js'
import type { AttemptSteps } from '../../../src/core/engine/dispatch/attempt/attempt-steps.js'
import { policyOf } from '../../../src/core/engine/dispatch/attempt/policy.js'
import { resolveEngineOptions } from '../../../src/core/engine/options.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import type { RunOptions, WorkOrder, WorkProgress } from '../../../src/core/engine/ports/runner.js'
import { noTracing, type Tracing } from '../../../src/core/engine/ports/tracing.js'
import type { Workflow } from '../../../src/core/engine/workflow/workflow.js'

const options = resolveEngineOptions({})
const trace = { traceparent: 'of the run' }
const song = { path: '/song.mp3', bytes: 9, name: 'Song.mp3' }
const parts = { parts: [], afterMs: 1, everyMs: 2, maxBytes: 3 }

/** A composition of one step. */
const composed = (policy?: object) => ({
  params: z.looseObject({}),
  outputs: () => ({}),
  stages: [{ name: 'one' }],
  composition: {
    steps: [
      {
        name: 'one',
        inputs: {},
        workflow: { id: 'test/step', module: { url: 'file:///step.mjs' } },
        params: () => ({}),
        policy: { maxAttempts: 1, ...policy },
      },
    ],
    outputs: {},
  },
})

/** The orders and options of the calls of the runner, the outcome, and the reports meanwhile. */
async function ordersOf(
  workflow: object,
  work: (runOptions: RunOptions) => Promise<void> = async () => {},
  steps?: AttemptSteps,
) {
  const orders: WorkOrder[] = []
  const spans: string[] = []
  const told: WorkProgress[] = []
  const job = sampleJob({ id: 'job', params: { loud: true } })
  const tracing: Tracing = {
    begin(order) {
      spans.push(order.name)
      return { ...noTracing.begin(order), context: trace }
    },
  }
  const result = runWorkflow({ id: 'test/sing', stages: [], ...workflow } as unknown as Workflow, {
    job,
    inputs: { song },
    directory: '/folder',
    checkpoint: async () => ({ checkpoint: parts }),
    steps,
    offers: ['gpu'],
    runner: {
      run: async (order: WorkOrder, runOptions: RunOptions) => {
        orders.push(order)
        await work(runOptions)
        return { outputs: {}, details: {} }
      },
    } as never,
    policy: policyOf('test/sing', { timeoutMs: 100, maxAttempts: 1 }, options),
    options,
    logger: silentLogger,
    spans: new AttemptSpans(tracing, job),
    signal: new AbortController().signal,
    onProgress: (progress) => void told.push(progress),
  })
  return { result: await result.catch((error: unknown) => error), orders, spans: spans.slice(1), told }
}

test('the order of a run contains everything that its process needs', async () => {
  const module = { url: 'file:///sing.mjs', settings: { voices: 4 } }
  const { orders } = await ordersOf({ module })
  const common = {
    jobId: 'job',
    workflow: 'test/sing',
    params: { loud: true },
    inputs: { song },
    directory: '/folder',
    limits: { maxAudioSeconds: options.limits.maxAudioSeconds },
    offers: ['gpu'],
    checkpoint: parts,
    trace,
  }
  expect(orders).toEqual([{ ...common, module: module.url, settings: module.settings }])
  expect((await ordersOf({})).orders).toEqual([{ ...common, module: null, settings: null }])
})

test('no step of a composition may take longer than the job, unless its own policy says so', async () => {
  const never = ({ signal }: RunOptions) =>
    new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
  const { result, orders } = await ordersOf(composed(), never)
  expect(result).toMatchObject({ code: 'TIMEOUT' })
  expect(orders).toMatchObject([{ workflow: 'test/step', trace }])
  const after = (ms: number) => () => new Promise<void>((resolve) => setTimeout(resolve, ms))
  expect((await ordersOf(composed({ timeoutMs: 5000 }), after(150))).result).toMatchObject({ outputs: {} })
})

test('progress is reported; each stage has a span, unless steps have theirs', async () => {
  const made = { stage: 'sing', progress: 0.5 }
  const sing = async ({ onProgress }: RunOptions) => void onProgress(made)
  expect(await ordersOf({}, sing)).toMatchObject({ spans: ['run', 'stage sing'], told: [made] })
  expect(await ordersOf({ run: sing }, sing)).toMatchObject({ spans: ['run'], told: [made] })
  const { spans, told } = await ordersOf(composed())
  expect([spans, told.at(-1)]).toEqual([['run', 'step one'], { stage: 'one', progress: 1 }])
})

test('steps are kept by the attempt, if it keeps any', async () => {
  const steps = { kept: [] } as unknown as AttemptSteps
  const given: unknown[] = []
  const { orders } = await ordersOf({}, async (run) => void given.push(run.steps), steps)
  expect(orders).toMatchObject([{ steps: [] }])
  expect(given[0]).toBe(steps)
})
