import { expect, test } from 'vitest'
import { z } from 'zod'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { AttemptSpans } from '../../../src/core/engine/dispatch/attempt/attempt-spans.js'
import { runWorkflow } from '../../../src/core/engine/dispatch/attempt/attempt-run.js'
import { policyOf } from '../../../src/core/engine/dispatch/attempt/policy.js'
import { resolveEngineOptions } from '../../../src/core/engine/options.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import type { RunOptions, WorkOrder } from '../../../src/core/engine/ports/runner.js'
import { noTracing } from '../../../src/core/engine/ports/tracing.js'
import type { Workflow } from '../../../src/core/engine/workflow/workflow.js'

const options = resolveEngineOptions({})
const trace = { traceparent: 'of the run' }
const song = { path: '/song.mp3', bytes: 9, name: 'Song.mp3' }
const parts = { parts: [], afterMs: 1, everyMs: 2, maxBytes: 3 }

/** The orders and options with which the runner is called, and what comes of it. */
async function ordersOf(workflow: object, work: (runOptions: RunOptions) => Promise<void> = async () => {}) {
  const orders: WorkOrder[] = []
  const job = sampleJob({ id: 'job', params: { loud: true } })
  const tracing = {
    begin: () => ({ ...noTracing.begin({ name: '', kind: 'internal', parent: null }), context: trace }),
  }
  const result = runWorkflow({ id: 'test/sing', stages: [], ...workflow } as unknown as Workflow, {
    job,
    inputs: { song },
    directory: '/folder',
    checkpoint: async () => ({ checkpoint: parts }),
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
    onProgress: () => {},
  })
  return { result: await result.catch((error: unknown) => error), orders }
}

test('the order of a run says everything that its process has to know', async () => {
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
  const step = (policy?: object) => ({
    name: 'one',
    inputs: {},
    workflow: { id: 'test/step', module: { url: 'file:///step.mjs' } },
    params: () => ({}),
    policy,
  })
  const composed = (policy?: object) => ({
    params: z.looseObject({}),
    outputs: () => ({}),
    stages: [{ name: 'one' }],
    composition: { steps: [step({ maxAttempts: 1, ...policy })], outputs: {} },
  })
  const never = ({ signal }: RunOptions) =>
    new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
  const { result, orders } = await ordersOf(composed(), never)
  expect(result).toMatchObject({ code: 'TIMEOUT' })
  expect(orders).toMatchObject([{ workflow: 'test/step', trace }])
  const after = (ms: number) => () => new Promise<void>((resolve) => setTimeout(resolve, ms))
  expect((await ordersOf(composed({ timeoutMs: 5000 }), after(150))).result).toMatchObject({ outputs: {} })
})
