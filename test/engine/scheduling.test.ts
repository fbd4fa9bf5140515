import { describe, expect, test } from 'vitest'
import { memoryJobs } from '../../src/adapters/memory.js'
import { memoryQueue } from '../../src/adapters/queues/memory/memory-queue.js'
import { gate, steppingClock, testEngine, textWorkflow } from './harness.js'

const never = { sweepIntervalMs: 3_600_000 }

describe('deadlines', () => {
  test('end a job that no worker has begun in time, by the sweep, with a message', async () => {
    const clock = steppingClock(Date.now())
    const { engine } = testEngine(textWorkflow(), {}, { jobs: memoryJobs({ clock: clock.now }) })
    const failed: string[] = []
    engine.on('job.failed', ({ job }) => failed.push(job.id))
    const deadline = clock.now() + 60_000
    const { job } = await engine.submit({ app: 'a', workflow: 'test/text', deadline })
    expect((await engine.sweep()).missed).toBe(0)
    clock.advance(60_000)
    expect((await engine.sweep()).missed).toBe(1)
    expect(await engine.get(job.id)).toMatchObject({
      status: 'FAILED',
      error: {
        code: 'TIMEOUT',
        reason: 'deadline',
        message: expect.stringContaining(new Date(deadline).toISOString()),
      },
    })
    expect(failed).toEqual([job.id])
  })

  test('end all jobs that have missed them in one sweep', async () => {
    const clock = steppingClock(Date.now())
    const { engine } = testEngine(textWorkflow(), {}, { jobs: memoryJobs({ clock: clock.now }) })
    const job = { workflow: 'test/text', params: {}, deadline: clock.now() + 1000 }
    await engine.submitBatch({ app: 'a', jobs: Array.from({ length: 250 }, () => job) })
    clock.advance(1000)
    expect((await engine.sweep()).missed).toBe(250)
  })

  test('stop a job that runs', async () => {
    const { engine } = testEngine(
      textWorkflow(
        ({ signal }) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason))
          }),
      ),
    )
    const { job } = await engine.submit({ app: 'a', workflow: 'test/text', deadline: Date.now() + 300 })
    expect(await engine.run(job.id)).toMatchObject({ status: 'FAILED', error: { code: 'TIMEOUT', reason: 'deadline' } })
  })

  test('end a job that waits for its next attempt, also where a host runs it and nothing sweeps', async () => {
    const workflow = textWorkflow(() => {
      throw new Error('temporary')
    })
    const { engine } = testEngine(workflow, { dispatch: { retryDelayMs: 600_000 } })
    const { job } = await engine.submit({ app: 'a', workflow: 'test/text', deadline: Date.now() + 150 })
    const ended = await engine.run(job.id)
    expect(ended).toMatchObject({ status: 'FAILED', attempts: 1, error: { code: 'TIMEOUT', reason: 'deadline' } })
  })

  test('that are months away stop nothing', async () => {
    const { engine } = testEngine(textWorkflow())
    const { job } = await engine.submit({ app: 'a', workflow: 'test/text', deadline: Date.now() + 90 * 86_400_000 })
    expect(await engine.run(job.id)).toMatchObject({ status: 'SUCCEEDED' })
  })

  test('that cannot be met are refused', async () => {
    const { engine } = testEngine(textWorkflow())
    const later = Date.now() + 60_000
    for (const times of [{ deadline: 1 }, { notBefore: later, deadline: later - 1 }])
      await expect(engine.submit({ app: 'a', workflow: 'test/text', ...times })).rejects.toMatchObject({
        code: 'INVALID_PARAMS',
        details: { issues: [{ path: 'deadline' }] },
      })
    for (const wrong of [{ priority: 3 }, { priority: 0.5 }, { notBefore: -1 }])
      await expect(engine.submit({ app: 'a', workflow: 'test/text', ...wrong })).rejects.toMatchObject({
        code: 'INVALID_PARAMS',
      })
  })
})

describe('scheduling rules', () => {
  test('a pause holds jobs back until it ends, which wakes the worker', async () => {
    const { engine, submit, until } = testEngine(textWorkflow(), { dispatch: never })
    await engine.schedule({ kind: 'workflow', id: 'test/text' }, { state: 'paused' })
    await engine.start()
    const job = await submit()
    expect(await engine.runOnce()).toBeUndefined()
    expect(await engine.queuePosition(job.id)).toBe(1)
    await engine.schedule({ kind: 'workflow', id: 'test/text' }, { state: 'open' })
    await until(job.id, 'SUCCEEDED')
    expect(await engine.queuePosition(job.id)).toBeUndefined()
    await engine.close()
  })

  test('a draining application accepts no new jobs and finishes those that it has', async () => {
    const { engine } = testEngine(textWorkflow())
    const submit = (app: string, idempotencyKey?: string) =>
      engine.submit({ app, workflow: 'test/text', idempotencyKey })
    const { job } = await submit('a', 'k')
    await engine.schedule({ kind: 'application', id: 'a' }, { state: 'draining' })
    await expect(submit('a')).rejects.toMatchObject({ code: 'DRAINING', retryable: true })
    expect((await submit('a', 'k')).job.id).toBe(job.id)
    await submit('b')
    expect(await engine.run(job.id)).toMatchObject({ status: 'SUCCEEDED' })
    await engine.schedule({ kind: 'application', id: 'a' }, { state: 'open' })
    await submit('a')
    expect(await engine.schedulingRules()).toEqual([])
  })

  test('a limit holds over two workers on one store', async () => {
    const jobs = memoryJobs()
    const started = [gate(), gate()]
    const release = gate()
    let running = 0
    let most = 0
    const workflow = textWorkflow(async () => {
      most = Math.max(most, ++running)
      started[running - 1]?.open()
      await release.opened
      running--
    })
    const queue = memoryQueue()
    const workers = [0, 1].map(() => testEngine(workflow, { dispatch: { concurrency: 4 } }, { jobs, queue }))
    const [first] = workers
    await first!.engine.schedule({ kind: 'deployment' }, { maxRunning: 2 })
    const all = await Promise.all(Array.from({ length: 6 }, () => first!.submit()))
    for (const { engine } of workers) await engine.start()
    await Promise.all(started.map(({ opened }) => opened))
    release.open()
    for (const { id } of all)
      await expect.poll(async () => (await jobs.get(id))?.status, { timeout: 30_000 }).toBe('SUCCEEDED')
    expect(most).toBe(2)
    for (const { engine } of workers) await engine.close()
  })

  test('that make no sense are refused', async () => {
    const { engine } = testEngine(textWorkflow())
    for (const [target, change] of [
      [{ kind: 'application', id: '' }, { state: 'paused' }],
      [{ kind: 'deployment' }, { maxRunning: 0 }],
      [{ kind: 'deployment' }, { state: 'stopped' }],
    ])
      await expect(engine.schedule(target as never, change as never)).rejects.toMatchObject({ code: 'INVALID_PARAMS' })
  })
})

test('a worker leaves the jobs of a workflow that it does not have to others', async () => {
  const jobs = memoryJobs()
  const other = testEngine(
    textWorkflow(() => {}, 'test/other'),
    {},
    { jobs },
  )
  const { engine } = testEngine(textWorkflow(), {}, { jobs })
  const { job } = await other.engine.submit({ app: 'a', workflow: 'test/other' })
  expect(await engine.runOnce()).toBeUndefined()
  expect((await other.engine.runOnce())?.id).toBe(job.id)
})
