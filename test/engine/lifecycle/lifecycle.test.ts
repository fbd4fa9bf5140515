import { afterEach, describe, expect, test, vi } from 'vitest'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { memoryQueue } from '../../../src/adapters/queues/memory/memory-queue.js'
import { faultOnce, withFaults } from '../../../src/contract/faults.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import type { JobQueue } from '../../../src/core/engine/ports/job-queue.js'
import type { Runner } from '../../../src/core/engine/ports/runner.js'
import { inlineRunner } from '../../../src/core/engine/runner/inline-runner.js'
import { createHandler } from '../../../src/http/index.js'
import { gate, recordingLogger, testEngine, textWorkflow } from '../harness.js'

afterEach(() => vi.useRealTimers())

const away = new Error('away')

describe('start', () => {
  test('may be called again after it failed, and then accepts jobs', async () => {
    const queue = withFaults(memoryQueue(), faultOnce('subscribe', 'before', { error: away }))
    const { engine, submit, until } = testEngine(textWorkflow(), {}, { queue })
    const job = await submit()
    await expect(engine.start()).rejects.toBe(away)
    await engine.start()
    expect((await until(job.id, 'SUCCEEDED')).status).toBe('SUCCEEDED')
    await engine.close()
  })

  test('that failed leaves nothing running: no sweep, no subscription', async () => {
    vi.useFakeTimers()
    const jobs = memoryJobs()
    const due = vi.spyOn(jobs, 'due')
    const queue = withFaults(memoryQueue(), faultOnce('subscribe', 'before', { error: away }))
    const { engine } = testEngine(textWorkflow(), {}, { queue, jobs })
    await expect(engine.start()).rejects.toBe(away)
    await vi.advanceTimersByTimeAsync(10 * engine.options.dispatch.sweepIntervalMs)
    expect(due).not.toHaveBeenCalled()
    await engine.close()
  })

  test('that is called several times at once subscribes once, and all callers learn of its failure', async () => {
    const inner = memoryQueue()
    let subscriptions = 0
    const queue: JobQueue = {
      ...inner,
      subscribe(listener) {
        if (++subscriptions === 1) return Promise.reject(away)
        return inner.subscribe(listener)
      },
    }
    const { engine } = testEngine(textWorkflow(), {}, { queue })
    const failed = await Promise.allSettled([engine.start(), engine.start(), engine.start()])
    expect(failed.map((outcome) => outcome.status === 'rejected' && outcome.reason === away)).toEqual([
      true,
      true,
      true,
    ])
    expect(subscriptions).toBe(1)
    await Promise.all([engine.start(), engine.start()])
    await engine.start()
    expect(subscriptions).toBe(2)
    await engine.close()
  })

  test('does not warn of a leak where a program has a dozen handlers', async () => {
    const warnings: Error[] = []
    const note = (warning: Error) => void warnings.push(warning)
    process.on('warning', note)
    const { engine } = testEngine(textWorkflow())
    for (let times = 0; times < 12; times++) createHandler(engine)
    // Warnings are emitted in the next turn.
    await new Promise(setImmediate)
    process.off('warning', note)
    expect(warnings).toEqual([])
    await engine.close()
  })

  test('after close fails and says that the engine was closed', async () => {
    const { engine } = testEngine(textWorkflow())
    await engine.close()
    await expect(engine.start()).rejects.toMatchObject({
      code: 'SHUTTING_DOWN',
      message: expect.stringContaining('cannot be started again'),
    })
  })

  test('that close overtakes is rejected, and its subscription is stopped', async () => {
    const inner = memoryQueue()
    const subscribing = gate()
    const mayGoOn = gate()
    let stops = 0
    const queue: JobQueue = {
      ...inner,
      async subscribe(listener) {
        subscribing.open()
        await mayGoOn.opened
        const subscription = await inner.subscribe(listener)
        return { stop: () => (stops++, subscription.stop()) }
      },
    }
    const { engine } = testEngine(textWorkflow(), {}, { queue })
    const starting = engine.start().catch((error: unknown) => error)
    await subscribing.opened
    const closing = engine.close()
    mayGoOn.open()
    expect(await starting).toMatchObject({ code: 'SHUTTING_DOWN' })
    await closing
    expect(stops).toBe(1)
  })
})

describe('close', () => {
  /** Parts that record when they are closed; the named ones fail or hang. */
  function partsThat(behave: (part: string) => Promise<void>) {
    const closed: string[] = []
    const closing = (name: string, close: () => Promise<void>) => async () => {
      closed.push(name)
      await behave(name)
      await close()
    }
    const innerQueue = memoryQueue()
    const queue: JobQueue = {
      ...innerQueue,
      async subscribe(listener) {
        const subscription = await innerQueue.subscribe(listener)
        return { stop: closing('subscription', () => subscription.stop()) }
      },
      close: closing('queue', () => innerQueue.close()),
    }
    const workflow = textWorkflow()
    const innerRunner = inlineRunner({ resolve: () => workflow })
    const runner: Runner = { ...innerRunner, close: closing('runner', () => innerRunner.close()) }
    return { queue, runner, closed, workflow }
  }

  test('closes every part even if others fail, and reports and logs all that failed', async () => {
    const { queue, runner, closed, workflow } = partsThat((part) => Promise.reject(new Error(`${part} broke`)))
    const { logger, lines } = recordingLogger()
    const { engine } = testEngine(workflow, { logger }, { queue, runner })
    await engine.start()
    const error: unknown = await engine.close().catch((reason: unknown) => reason)
    expect(closed).toEqual(['subscription', 'queue', 'runner'])
    expect(error).toMatchObject({ code: 'CLOSE_FAILED', details: { parts: ['dispatcher', 'queue', 'runner'] } })
    const cause = StemworkError.is(error) ? error.cause : undefined
    expect(cause).toBeInstanceOf(AggregateError)
    expect((cause as AggregateError).errors.map(String)).toEqual([
      'Error: subscription broke',
      'Error: queue broke',
      'Error: runner broke',
    ])
    expect(lines.filter(({ level }) => level === 'error').map(({ fields }) => fields.part)).toEqual([
      'dispatcher',
      'queue',
      'runner',
    ])
  })

  test('waits for a part that hangs only until its time limit, and closes the others', async () => {
    vi.useFakeTimers()
    const { queue, runner, closed, workflow } = partsThat((part) =>
      part === 'runner' ? Promise.resolve() : new Promise(() => {}),
    )
    const { engine } = testEngine(workflow, { dispatch: { leaseMs: 1000 } }, { queue, runner })
    await engine.start()
    const outcome = engine.close({ timeoutMs: 500 }).catch((error: unknown) => error)
    await vi.runAllTimersAsync()
    expect(await outcome).toMatchObject({ code: 'CLOSE_FAILED', details: { parts: ['dispatcher', 'queue'] } })
    expect(closed).toEqual(['subscription', 'queue', 'runner'])
  })

  test('has one outcome, however often it is called', async () => {
    const { queue, runner, closed, workflow } = partsThat((part) =>
      part === 'queue' ? Promise.reject(away) : Promise.resolve(),
    )
    const { engine } = testEngine(workflow, {}, { queue, runner })
    const outcomes = await Promise.allSettled([engine.close(), engine.close()])
    outcomes.push(...(await Promise.allSettled([engine.close()])))
    const reasons = outcomes.map((outcome) => (outcome.status === 'rejected' ? (outcome.reason as unknown) : undefined))
    expect(reasons[0]).toMatchObject({ code: 'CLOSE_FAILED' })
    expect(new Set(reasons).size).toBe(1)
    expect(closed).toEqual(['queue', 'runner'])
  })

  test('gives running jobs back at once if the subscription cannot be stopped', async () => {
    const started = gate()
    const jobs = memoryJobs()
    const workflow = textWorkflow(({ signal }) => {
      started.open()
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })
    const inner = memoryQueue()
    const queue: JobQueue = {
      ...inner,
      async subscribe(listener) {
        await inner.subscribe(listener)
        return { stop: () => Promise.reject(away) }
      },
    }
    const { engine, submit, until } = testEngine(workflow, {}, { jobs, queue, blobs: memoryBlobs() })
    await engine.start()
    const job = await submit()
    await started.opened
    const requeued = until(job.id, 'QUEUED')
    await expect(engine.close({ timeoutMs: 60_000 })).rejects.toMatchObject({ code: 'CLOSE_FAILED' })
    expect(await requeued).toMatchObject({ status: 'QUEUED', attempts: 0 })
  })
})

describe('a listener', () => {
  test.each([
    [
      'throws',
      () => {
        throw away
      },
    ],
    ['rejects', () => Promise.reject(away)],
  ])('that %s does not keep others from being called, ends no process, and is logged', async (_what, fail) => {
    const { logger, lines } = recordingLogger()
    const { engine, submit } = testEngine(textWorkflow(), { logger })
    const unhandled: unknown[] = []
    const onUnhandled = (reason: unknown) => void unhandled.push(reason)
    process.on('unhandledRejection', onUnhandled)
    try {
      const heard: string[] = []
      engine.on('job.succeeded', fail)
      engine.on('job.succeeded', ({ job }) => heard.push(job.id))
      const job = await submit()
      expect(await engine.run(job.id)).toMatchObject({ status: 'SUCCEEDED' })
      // Node.js reports an unhandled rejection after the microtasks of the turn in which it occurred.
      await new Promise(setImmediate)
      expect(heard).toEqual([job.id])
      expect(unhandled).toEqual([])
      expect(lines.filter(({ level }) => level === 'error')).toMatchObject([
        { fields: { event: 'job.succeeded', jobId: job.id, err: away } },
      ])
    } finally {
      process.off('unhandledRejection', onUnhandled)
    }
    await engine.close()
  })
})
