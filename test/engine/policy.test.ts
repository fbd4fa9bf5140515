import { describe, expect, test, vi } from 'vitest'
import { policyOf } from '../../src/core/engine/dispatch/attempt/policy.js'
import { badInput, internalError, StemworkError } from '../../src/core/engine/errors.js'
import { canceled, missedDeadline, timedOut } from '../../src/core/engine/job/failure.js'
import { type EngineSettings, resolveEngineOptions } from '../../src/core/engine/options.js'
import { defineWorkflow, type StageContext } from '../../src/core/engine/workflow/workflow.js'
import type { WorkflowPolicy } from '../../src/core/engine/workflow/policy.js'
import { testEngine, textWorkflow } from './harness.js'

const id = 'test/text'
const lostWorker = new StemworkError('INTERNAL_ERROR', 'lost', { reason: 'worker_lost', retryable: true })

describe('what holds for a workflow', () => {
  const resolved = (own: WorkflowPolicy | undefined, settings: EngineSettings = {}) =>
    policyOf(id, own, resolveEngineOptions(settings))

  test("is the host's setting for it, else its own, else the general one", () => {
    const all = { dispatch: { maxAttempts: 2, retryDelayMs: 10, retryJitter: 0 }, limits: { jobTimeoutMs: 1000 } }
    const seen = (own?: WorkflowPolicy, host?: WorkflowPolicy) => {
      const { maxAttempts, timeoutMs, delayMs } = resolved(own, { ...all, policies: host ? { [id]: host } : {} })
      return [maxAttempts, timeoutMs, delayMs(1)]
    }
    expect(seen()).toEqual([2, 1000, 10])
    expect(seen({ maxAttempts: 5, retryDelayMs: 20 })).toEqual([5, 1000, 20])
    expect(seen({ maxAttempts: 5, retryDelayMs: 20 }, { maxAttempts: 7, timeoutMs: 3 })).toEqual([7, 3, 20])
  })

  test('the wait doubles up to its cap, and is longer by a random share within bounds', () => {
    const { delayMs } = resolved({ retryDelayMs: 100, maxRetryDelayMs: 1000, retryJitter: 0 })
    expect([1, 2, 3, 4, 5, 2000].map(delayMs)).toEqual([100, 200, 400, 800, 1000, 1000])
    const jittered = resolved({ retryDelayMs: 1000, maxRetryDelayMs: 1000, retryJitter: 0.5 })
    const waits = Array.from({ length: 100 }, () => jittered.delayMs(1))
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(1000)
    expect(Math.max(...waits)).toBeLessThanOrEqual(1500)
    expect(new Set(waits).size).toBeGreaterThan(10)
    // Rounded to the nearest whole millisecond.
    vi.spyOn(Math, 'random').mockReturnValue(0.999)
    expect(resolved({ retryDelayMs: 100, retryJitter: 0.5 }).delayMs(1)).toBe(150)
    vi.restoreAllMocks()
  })

  test('a failure is retryable by itself, by code, reason or function; a cancel and a deadline never are', () => {
    const timeout = timedOut(1)
    const bad = badInput('decode_failed', 'no')
    const passes = (retryOn?: WorkflowPolicy['retryOn']) =>
      [internalError(new Error('x')), lostWorker, timeout, bad, canceled(), missedDeadline(1)].map((error) =>
        resolved({ retryOn }).isRetried(error),
      )
    expect(passes()).toEqual([true, true, false, false, false, false])
    expect(passes(['worker_lost', 'TIMEOUT'])).toEqual([false, true, true, false, false, false])
    expect(passes(() => true)).toEqual([true, true, true, true, false, false])
    expect(passes(({ reason }) => reason === 'decode_failed')).toEqual([false, false, false, true, false, false])
  })

  test('is refused by name if it is wrong', () => {
    expect(() => resolveEngineOptions({ policies: { [id]: { maxAttempts: 0 } } })).toThrow(/policies.*maxAttempts/)
    const { stages, outputs, params } = textWorkflow()
    const definition = { id, name: 'x', description: 'x', inputs: [], stages, params, outputs: () => outputs({}) }
    expect(() => defineWorkflow({ ...definition, policy: { retryJitter: 2 } })).toThrow(/policy.*retryJitter/)
  })
})

describe('an engine', () => {
  const failing = (work: (context: StageContext) => Promise<void> | void, policy?: WorkflowPolicy) => ({
    ...textWorkflow(work),
    policy,
  })

  test('tries a job as often as its workflow says, whatever the setting of others', async () => {
    let runs = 0
    const workflow = failing(
      () => {
        runs++
        throw badInput('decode_failed', 'no')
      },
      { maxAttempts: 4, retryDelayMs: 1, retryOn: ['decode_failed'] },
    )
    const { engine, submit } = testEngine(workflow, { dispatch: { maxAttempts: 2 } })
    expect(await engine.run((await submit()).id)).toMatchObject({ status: 'FAILED', attempts: 4 })
    expect(runs).toBe(4)
  })

  test('stops an attempt at the time that the host has set for the workflow', async () => {
    const workflow = failing(
      ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    )
    const { engine, submit } = testEngine(workflow, { policies: { [id]: { timeoutMs: 30 } } })
    expect(await engine.run((await submit()).id)).toMatchObject({ status: 'FAILED', error: { code: 'TIMEOUT' } })
  })

  test('ends a job whose policy throws', async () => {
    const workflow = failing(() => Promise.reject(new Error('x')), {
      retryOn() {
        throw new Error('of the host')
      },
    })
    const { engine, submit } = testEngine(workflow)
    expect(await engine.run((await submit()).id)).toMatchObject({ status: 'FAILED', attempts: 1 })
  })
})
