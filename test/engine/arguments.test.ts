import { describe, expect, test } from 'vitest'
import { createEngine } from '../../src/create-engine.js'
import { memoryQueue } from '../../src/adapters/queues/memory/memory-queue.js'
import { memoryBlobs, memoryJobs } from '../../src/adapters/memory.js'
import type { CreateEngineOptions } from '../../src/create-engine.js'
import { inlineRunner } from '../../src/core/engine/runner/inline-runner.js'
import { processRunner } from '../../src/core/engine/runner/process-runner.js'
import { createTestEngine } from '../../src/testing/index.js'
import { textWorkflow } from './harness.js'

/** Options that a host without type checking may pass. */
type Loose = CreateEngineOptions & Record<string, unknown>

describe('createEngine refuses', () => {
  test.each<[string, unknown, string]>([
    [
      'a job store without methods',
      { jobs: {} },
      'jobs is not a job store: it lacks all that one has. Pass what memoryJobs()',
    ],
    ['a job store that lacks some', { jobs: { ...memoryJobs(), claim: undefined } }, 'it lacks claim.'],
    ['a store without its scope', { blobs: { ...memoryBlobs(), traits: undefined } }, 'it lacks traits.scope'],
    ['both stores of sqliteStores as jobs', { jobs: { jobs: memoryJobs(), close() {} } }, 'not a job store'],
    ['a queue that is a name', { queue: 'redis://localhost' }, 'queue is not a queue'],
    ['applications of another kind', { applications: memoryQueue() }, 'applications is not an application store'],
    ['a runner of another kind', { runner: () => {} }, 'runner is not a runner'],
    ['one workflow instead of a list', { workflows: textWorkflow() }, 'workflows must be a list'],
    ['a definition that was not made', { workflows: [{ id: 'a' }] }, 'what defineWorkflow()'],
    ['a logger without levels', { logger: () => {} }, 'must have the methods debug, info, warn and error'],
    ['an option that it does not have', { job: memoryJobs() }, 'job: is not known'],
    ['an address rule that it does not have', { fetch: { allowed: ['nas.local'] } }, 'fetch.allowed: is not known'],
    ['allowed addresses that are no list', { fetch: { allow: 'nas.local' } }, 'fetch.allow: '],
    ['a time for which no date can be told', { retention: { resultsMs: 2 ** 53 - 1 } }, 'resultsMs: must be at most'],
    ['a limit beyond 31 bits of milliseconds', { limits: { jobTimeoutMs: 2 ** 31 } }, 'jobTimeoutMs: must be at most'],
    ['a lease beyond them', { dispatch: { leaseMs: 2 ** 31 } }, 'leaseMs: must be at most'],
    ['a download beyond them', { inputs: { totalMs: 2 ** 31 } }, 'totalMs: must be at most'],
    ['a webhook beyond them', { webhooks: { timeoutMs: 2 ** 31 } }, 'webhooks.timeoutMs: must be at most'],
    ['a webhook secret of another form', { webhooks: { secret: 'a-secret' } }, 'A webhook secret must be "whsec_"'],
    ['variables of a child that are no texts', { child: { environment: { A: 1 } } }, 'environment'],
    [
      'a set-up of children for a runner that is given',
      { child: { nodeArguments: [] }, runner: inlineRunner({ resolve: () => textWorkflow() }) },
      'processRunner()',
    ],
  ])('%s', (_what, options, words) => {
    expect(() => createEngine(options as Loose)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTIONS', message: expect.stringContaining(words) }),
    )
  })
})

test('processRunner refuses a call without what it needs', () => {
  expect(() => processRunner({} as never)).toThrow('resolve: must be a function')
  expect(() => processRunner({ resolve: () => textWorkflow(), slot: 2 } as never)).toThrow(
    'slot: is not known: the nearest name is slots',
  )
})

describe('an engine refuses', () => {
  const engine = createTestEngine({ workflows: [textWorkflow()] })
  const valid = { app: 'me', workflow: 'test/text' }

  test.each<[string, unknown, string]>([
    ['nothing', undefined, 'expected an object'],
    ['a job without an application', { workflow: 'test/text', params: {} }, 'app: '],
    ['a job without a workflow', { app: 'me' }, 'workflow: '],
    ['params that are no object', { ...valid, params: 'x' }, 'params: '],
    ['a field that it does not know', { ...valid, param: {} }, 'param: is not known: the nearest name is params'],
    ['metadata that is not text', { ...valid, metadata: { n: 1 } }, 'metadata.n'],
  ])('%s', async (_what, input, words) => {
    await expect(engine.submit(input as never)).rejects.toMatchObject({
      code: 'INVALID_PARAMS',
      message: expect.stringContaining(words),
      details: { issues: [expect.anything()] },
    })
  })

  test.each<[string, unknown, string]>([
    ['a list by pages, as HTTP has it', { page: 0, size: 10 }, 'limit, offset, after'],
    ['a list of everything', {}, '`limit` is needed'],
    ['a list of no whole length', { limit: 1.5 }, 'limit: '],
  ])('%s', async (_what, page, words) => {
    await expect(engine.list(page as never)).rejects.toMatchObject({
      code: 'INVALID_PARAMS',
      message: expect.stringContaining(words),
    })
  })
})
