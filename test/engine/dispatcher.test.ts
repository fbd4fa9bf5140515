import { describe, expect, test, vi } from 'vitest'
import { memoryJobs } from '../../src/adapters/memory.js'
import { memoryQueue } from '../../src/adapters/queues/memory/memory-queue.js'
import type { EngineSettings } from '../../src/core/engine/options.js'
import type { JobQueue } from '../../src/core/engine/ports/job-queue.js'
import type { JobStore } from '../../src/core/engine/ports/job-store.js'
import type { Workflow } from '../../src/core/engine/workflow/workflow.js'
import { gate, recordingLogger, testEngine, textWorkflow } from './harness.js'

const never = { sweepIntervalMs: 3_600_000 }
const soon = () => new Promise((resolve) => setTimeout(resolve, 20))

/** A worker with one lane and a queue whose notifications are those of the test. */
function notified(workflow: Workflow, traits: Partial<JobQueue['traits']> = {}, settings: EngineSettings = {}) {
  const notify = vi.fn(async () => {})
  let listener = async () => {}
  const queue: JobQueue = {
    ...memoryQueue(),
    traits: { scope: 'process', ...traits },
    notify,
    subscribe: async (heard) => {
      listener = heard
      return { stop: async () => {} }
    },
  }
  const worker = testEngine(workflow, { ...settings, dispatch: { concurrency: 1, ...never } }, { queue })
  return { ...worker, notify, hear: () => listener() }
}

describe('a notification', () => {
  test.each([
    ['one', 1],
    ['all', 0],
  ] as const)('that a full worker hears goes on to another where it woke %s', async (wakes, times) => {
    const finish = gate()
    const { engine, submit, until, notify, hear } = notified(
      textWorkflow(() => finish.opened),
      { wakes },
    )
    await engine.start()
    const job = await submit()
    await hear()
    await until(job.id, 'STARTED')
    notify.mockClear()
    let hasRoom = false
    const heard = hear().then(() => (hasRoom = true))
    await soon()
    expect([notify.mock.calls.length, hasRoom]).toEqual([times, false])
    finish.open()
    await heard
    await until(job.id, 'SUCCEEDED')
    expect(notify).toHaveBeenCalledTimes(times)
    await engine.close()
  })

  test('for more jobs than there is room goes on once', async () => {
    const finish = gate()
    const { engine, submit, until, notify, hear } = notified(textWorkflow(() => finish.opened))
    await engine.start()
    const jobs = [await submit(), await submit()]
    notify.mockClear()
    void hear()
    await expect.poll(() => notify.mock.calls.length).toBe(1)
    finish.open()
    for (const { id } of jobs) await until(id, 'SUCCEEDED')
    expect(notify).toHaveBeenCalledTimes(1)
    await engine.close()
  })

  test('for which there is no job goes on to nobody', async () => {
    const { engine, notify, hear } = notified(textWorkflow())
    await engine.start()
    await hear()
    await soon()
    expect(notify).not.toHaveBeenCalled()
    await engine.close()
  })

  test('that cannot be passed on is logged, and the worker goes on', async () => {
    const { logger, lines } = recordingLogger()
    const finish = gate()
    const { engine, submit, until, notify, hear } = notified(
      textWorkflow(() => finish.opened),
      {},
      { logger },
    )
    await engine.start()
    const job = await submit()
    await hear()
    await until(job.id, 'STARTED')
    notify.mockRejectedValueOnce(new Error('no queue'))
    const heard = hear()
    await expect.poll(() => lines).toContainEqual({ level: 'warn', fields: { err: expect.any(Error) } })
    finish.open()
    await heard
    await until(job.id, 'SUCCEEDED')
    await engine.close()
  })
})

test('a worker that has closed leaves no timer that keeps its process alive', async () => {
  const { engine, submit, until } = testEngine(textWorkflow())
  await engine.start()
  await until((await submit()).id, 'SUCCEEDED')
  const started = vi.spyOn(globalThis, 'setTimeout')
  const cleared = vi.spyOn(globalThis, 'clearTimeout')
  await engine.close({ timeoutMs: 54_321 })
  const timers = started.mock.results.map(({ value }) => value as unknown)
  const long = timers.filter((_, index) => started.mock.calls[index]?.[1] === 54_321)
  const ended = new Set(cleared.mock.calls.map(([timer]) => timer as unknown))
  started.mockRestore()
  cleared.mockRestore()
  expect(long.length).toBeGreaterThan(0)
  expect(long.every((timer) => ended.has(timer))).toBe(true)
})

test('a run whose signal fires while it claims hands the job back, and the attempt does not count', async () => {
  const jobs = memoryJobs()
  const controller = new AbortController()
  const store: JobStore = {
    ...jobs,
    async claim(request) {
      const job = await jobs.claim(request)
      controller.abort()
      return job
    },
  }
  const { engine, submit } = testEngine(
    textWorkflow(() => new Promise(() => {})),
    {},
    { jobs: store },
  )
  const job = await submit()
  await engine.run(job.id, controller).catch(() => {})
  expect(await engine.get(job.id)).toMatchObject({ status: 'QUEUED', attempts: 0, shutdownRequeues: 1 })
  await engine.close()
})

describe('the job of a lost worker', () => {
  const dispatch = { leaseMs: 300, progressIntervalMs: 10, ...never }

  /** On a store of several processes, of which one began the job and died. */
  async function lost() {
    const jobs: JobStore = { ...memoryJobs(), traits: { scope: 'shared' } }
    const worker = testEngine(textWorkflow(), { dispatch }, { jobs })
    const { id } = await worker.submit()
    const claim = { owner: 'dead', nonce: 'n', leaseMs: 1, labels: [], workflows: ['test/text'] }
    expect(await jobs.claim({ ...claim, lapsedBefore: undefined })).toMatchObject({ id })
    await soon()
    return { ...worker, jobs, id }
  }

  test('is looked for again by a worker that may not judge it yet, though nobody notifies it', async () => {
    const { engine, until, id } = await lost()
    await engine.start()
    expect(await until(id, 'SUCCEEDED')).toMatchObject({ token: 2, lapses: 1 })
    await engine.close()
  })

  test('is waited for by who runs the next job', async () => {
    const { engine, id } = await lost()
    expect(await engine.run()).toMatchObject({ id, status: 'SUCCEEDED', token: 2 })
    await engine.close()
  })

  test('is waited for until the signal of the run fires', async () => {
    const { engine, id } = await lost()
    const run = engine.run(undefined, { signal: AbortSignal.timeout(20) })
    await run.then(
      (job) => expect(job).toBeUndefined(),
      (error: unknown) => expect(error).toMatchObject({ name: 'TimeoutError' }),
    )
    expect(await engine.get(id)).toMatchObject({ status: 'STARTED', token: 1 })
    await engine.close()
  })

  test('is left alone by a worker without what it needs', async () => {
    const { engine, jobs } = await lost()
    const other = testEngine(
      textWorkflow(() => {}, 'test/other'),
      { dispatch },
      { jobs },
    )
    expect(await other.engine.run()).toBeUndefined()
    await Promise.all([engine.close(), other.engine.close()])
  })
})
