import { describe, expect, test } from 'vitest'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import type { Runner } from '../../../src/core/engine/ports/runner.js'
import { inlineRunner } from '../../../src/core/engine/runner/inline-runner.js'
import { gate, testEngine, textWorkflow } from '../harness.js'

const temporary = () => new StemworkError('INTERNAL_ERROR', 'not yet', { retryable: true })

describe('run', () => {
  test('counts the processor time of all attempts for the ledger, and anew after a retry by the client', async () => {
    let attempts = 0
    const workflow = textWorkflow(() => {
      if (++attempts < 5) throw temporary()
    })
    const inner = inlineRunner({ resolve: () => workflow })
    const runner: Runner = {
      ...inner,
      run: (order, options) => {
        for (const seconds of [1, 2]) options.onUse?.(seconds)
        return inner.run(order, options)
      },
    }
    const { engine, submit } = testEngine(workflow, {}, { runner })
    const used: number[] = []
    engine.on('usage.recorded', ({ entry }) => void used.push(entry.processorSeconds))
    const job = await submit()
    expect(await engine.run(job.id)).toMatchObject({ status: 'FAILED', attempts: 3 })
    await engine.retry(job.id)
    expect(await engine.run(job.id)).toMatchObject({ status: 'SUCCEEDED', attempts: 2 })
    expect(used).toEqual([6, 4])
  })

  test('resolves when the job has ended, after its retries', async () => {
    let attempts = 0
    const { engine, submit, events } = testEngine(
      textWorkflow(() => {
        if (++attempts < 3) throw temporary()
      }),
      { dispatch: { retryDelayMs: 60 } },
    )
    const job = await submit()
    expect(await engine.run(job.id)).toMatchObject({ status: 'SUCCEEDED', attempts: 3 })
    expect(events.filter((name) => name === 'job.requeued')).toHaveLength(2)
  })

  test('without an id runs the next job to its end, and returns undefined if there is none', async () => {
    let attempts = 0
    const { engine, submit } = testEngine(
      textWorkflow(() => {
        if (++attempts === 1) throw temporary()
      }),
    )
    expect(await engine.run()).toBeUndefined()
    const first = await submit()
    await submit()
    expect(await engine.run()).toMatchObject({ id: first.id, status: 'SUCCEEDED', attempts: 2 })
  })

  test('ends with FAILED after the last attempt; returns at once for a job that has ended or is missing', async () => {
    const { engine, submit } = testEngine(
      textWorkflow(() => {
        throw temporary()
      }),
    )
    const job = await submit()
    const ended = await engine.run(job.id)
    expect(ended).toMatchObject({ status: 'FAILED', attempts: 3 })
    expect(await engine.run(job.id)).toEqual(ended)
    expect(await engine.run('00000000-0000-4000-8000-000000000000')).toBeUndefined()
  })

  test('waits for another worker that runs the job', async () => {
    const jobs = memoryJobs()
    const started = gate()
    const finish = gate()
    const worker = testEngine(
      textWorkflow(async () => {
        started.open()
        await finish.opened
      }),
      {},
      { jobs },
    )
    const other = testEngine(textWorkflow(), {}, { jobs })
    const job = await worker.submit()
    const first = worker.engine.run(job.id)
    await started.opened
    const second = other.engine.run(job.id)
    finish.open()
    expect(await second).toEqual(await first)
    expect(await second).toMatchObject({ status: 'SUCCEEDED', attempts: 1 })
  })

  test('hands the job back when its signal fires, and rejects with the reason', async () => {
    const started = gate()
    const { engine, submit } = testEngine(
      textWorkflow(async ({ signal }) => {
        started.open()
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      }),
    )
    const job = await submit()
    const controller = new AbortController()
    const run = engine.run(job.id, { signal: controller.signal })
    await started.opened
    const reason = new Error('the function has no time left')
    controller.abort(reason)
    await expect(run).rejects.toBe(reason)
    expect(await engine.get(job.id)).toMatchObject({ status: 'QUEUED', attempts: 0, shutdownRequeues: 1 })
    await expect(engine.run(job.id, { signal: controller.signal })).rejects.toBe(reason)
  })

  test('waits for no retry once the engine closes', async () => {
    const { engine, submit } = testEngine(
      textWorkflow(() => {
        throw temporary()
      }),
      { dispatch: { retryDelayMs: 3_600_000 } },
    )
    const job = await submit()
    const requeued = new Promise((resolve) => engine.on('job.requeued', resolve))
    const run = engine.run(job.id).catch((error: unknown) => error)
    await requeued
    await engine.close()
    expect(await run).toMatchObject({ code: 'SHUTTING_DOWN' })
    expect(await engine.get(job.id)).toMatchObject({ status: 'QUEUED', attempts: 1 })
  })

  test('ends for a job that is deleted between two attempts', async () => {
    const { engine, submit } = testEngine(
      textWorkflow(() => {
        throw temporary()
      }),
      { dispatch: { retryDelayMs: 3_600_000 } },
    )
    const job = await submit()
    const requeued = new Promise((resolve) => engine.on('job.requeued', resolve))
    const run = engine.run(job.id)
    await requeued
    await engine.delete(job.id)
    expect(await run).toBeUndefined()
  })
})

test('runOnce makes one attempt', async () => {
  const { engine, submit } = testEngine(
    textWorkflow(() => {
      throw temporary()
    }),
  )
  const job = await submit()
  expect(await engine.runOnce(job.id)).toMatchObject({ status: 'QUEUED', attempts: 1 })
})
