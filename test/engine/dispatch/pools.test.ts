import { describe, expect, test } from 'vitest'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { memoryQueue } from '../../../src/adapters/queues/memory/memory-queue.js'
import { composeWorkflow } from '../../../src/core/engine/workflow/composition.js'
import { inlineRunner } from '../../../src/core/engine/runner/inline-runner.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import type { Workflow } from '../../../src/core/engine/workflow/workflow.js'
import { gate, steppingClock, testEngine, textWorkflow } from '../harness.js'

const never = { sweepIntervalMs: 3_600_000 }

describe('pools', () => {
  const onGpu: Workflow = {
    ...textWorkflow(),
    needs: ({ model }) => (typeof model === 'string' ? ['gpu', `model:${model}`] : ['gpu']),
  }

  test('a worker takes only jobs whose labels it has, and the others say that no worker can take them', async () => {
    const jobs = memoryJobs()
    const parts = () => ({ jobs, queue: memoryQueue() })
    const cpu = testEngine(onGpu, { dispatch: never }, parts())
    await cpu.engine.start()
    const { id } = await cpu.submit()
    const { id: big } = await cpu.submit({ model: 'big' })
    expect(await cpu.engine.runOnce()).toBeUndefined()
    const queued = await cpu.engine.get(id)
    expect(queued?.pool).toBe('gpu')
    expect(queued && (await cpu.engine.waiting(queued))).toMatchObject({
      reason: 'no_worker',
      message: expect.stringContaining('gpu'),
    })
    const gpu = testEngine(onGpu, { dispatch: { ...never, labels: ['gpu'], concurrency: 2 }, owner: 'gpu-1' }, parts())
    await gpu.engine.start()
    await gpu.until(id, 'SUCCEEDED')
    expect((await cpu.engine.workers()).find(({ owner }) => owner === 'gpu-1')).toMatchObject({
      labels: ['gpu'],
      slots: 2,
      workflows: ['test/text'],
    })
    expect(await gpu.engine.pools()).toMatchObject([{ needs: ['gpu', 'model:big'], queued: 1, workers: 0, slots: 0 }])
    expect(await gpu.engine.get(big)).toMatchObject({ status: 'QUEUED' })
    await gpu.engine.close()
    expect((await cpu.engine.workers()).map(({ owner }) => owner)).not.toContain('gpu-1')
    await cpu.engine.close()
  })

  test('running jobs share the units of a label: one begins when the units that it needs are free', async () => {
    const ended = gate()
    const heavy: Workflow = {
      ...textWorkflow(),
      needs: ({ gigabytes }) => [`gpuMemory=${String(gigabytes)}`],
      stages: [{ name: 'work', run: () => ended.opened }],
      outputs: () => ({}),
    }
    const dispatch = { ...never, labels: ['gpuMemory=24'], concurrency: 4 }
    const { engine, submit, until } = testEngine(heavy, { dispatch })
    const jobs = []
    for (const gigabytes of [10, 10, 5, 10, 30]) jobs.push(await submit({ gigabytes }))
    await engine.start()
    const [first, second, , fourth, tooLarge] = jobs as [JobRecord, JobRecord, JobRecord, JobRecord, JobRecord]
    await until(first.id, 'STARTED')
    await until(second.id, 'STARTED')
    const running = async () =>
      (await engine.list({ statuses: ['STARTED'], limit: 10 })).map(({ params }) => params.gigabytes)
    // 24 = 10 + 10 + 4: the job of 5 waits, and so do the jobs behind it.
    expect(await running()).toEqual([10, 10])
    expect(await engine.waiting(tooLarge)).toMatchObject({ reason: 'no_worker' })
    ended.open()
    await until(fourth.id, 'SUCCEEDED')
    expect(await engine.get(tooLarge.id)).toMatchObject({ status: 'QUEUED' })
    await engine.close()
  })

  test('a composition needs what its steps need', async () => {
    const step = { ...textWorkflow(), needs: ['gpu'] }
    const whole = composeWorkflow({
      id: 'test/whole',
      name: 'Whole',
      description: 'Whole.',
      inputs: ['inputUrl'],
      steps: { one: { workflow: { ...step, inputs: [] } } },
      outputs: { text: 'one.text' },
    })
    const { engine } = testEngine(whole, {}, { runner: inlineRunner({ resolve: () => whole }) })
    const { job } = await engine.submit({ app: 'a', workflow: whole.id, params: { inputUrl: 'http://example.com/x' } })
    expect(job.pool).toBe('gpu')
  })

  test('health warns of jobs that wait for a kind of worker that does not exist, until there is one', async () => {
    const clock = steppingClock(Date.now())
    const jobs = memoryJobs({ clock: clock.now })
    const { engine, submit } = testEngine(onGpu, {}, { jobs })
    await submit()
    expect((await engine.health()).warnings).toEqual([])
    clock.advance(60_000)
    const later = testEngine(onGpu, {}, { jobs })
    expect((await later.engine.health()).warnings).toEqual([
      'No active worker accepts jobs of test/text with the labels gpu, and 1 wait.',
    ])
    const worker = testEngine(onGpu, { dispatch: { ...never, labels: ['gpu'] } }, { jobs })
    await worker.engine.schedule({ kind: 'deployment' }, { state: 'paused' })
    await worker.engine.start()
    expect((await worker.engine.health()).warnings).toEqual([])
    await worker.engine.close()
  })

  test('a dead worker is forgotten, and pools report the waiting work in seconds', async () => {
    const clock = steppingClock(Date.now())
    const jobs = memoryJobs({ clock: clock.now })
    const held = gate()
    let runs = 0
    const workflow = textWorkflow(async () => {
      if (++runs > 1) return await held.opened
      clock.advance(8_000)
    })
    const dispatch = { ...never, leaseMs: 300 }
    const worker = testEngine(workflow, { dispatch }, { jobs })
    const { id } = await worker.submit()
    await worker.engine.start()
    await worker.until(id, 'SUCCEEDED')
    for (let n = 0; n < 4; n++) await worker.submit()
    const other = testEngine(workflow, { dispatch: never }, { jobs })
    for (;;) {
      const [pool] = await testEngine(workflow, {}, { jobs }).engine.pools()
      if (pool?.running === 1 && pool.backlogSeconds !== null) {
        expect(pool).toMatchObject({ queued: 3, workers: 1, slots: 1, backlogSeconds: 24 })
        break
      }
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    clock.advance(100_000)
    expect((await other.engine.workers()).filter(({ seenAt }) => seenAt > clock.now())).toEqual([])
    held.open()
    await worker.engine.close()
  })

  test('a job says that it is paused, or that it is not due yet', async () => {
    const { engine, submit } = testEngine(textWorkflow(), { dispatch: never })
    await engine.schedule({ kind: 'deployment' }, { state: 'paused' })
    const job = await submit()
    expect(await engine.waiting(job)).toMatchObject({ reason: 'paused' })
    const later = await engine.submit({ app: 'a', workflow: 'test/text', notBefore: Date.now() + 60_000 })
    expect(await engine.waiting(later.job)).toMatchObject({ reason: 'scheduled' })
    await engine.cancel(job.id)
    const ended = await engine.get(job.id)
    expect(ended && (await engine.waiting(ended))).toBeUndefined()
  })
})

describe('quotas', () => {
  test('count jobs at once, and audio and bytes with the end of a job; an application may have its own', async () => {
    const workflow = textWorkflow(({ detail }) => detail('seconds', 90))
    const { engine, submit } = testEngine(workflow, { quota: { audioMinutes: 1, jobs: 10 } })
    const { id } = await submit()
    expect(await engine.usage('app')).toEqual({ jobs: 1, audioSeconds: 0, bytes: 0 })
    await engine.run(id)
    expect(await engine.usage('app')).toEqual({ jobs: 1, audioSeconds: 90, bytes: 0 })
    await expect(submit()).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
      message: expect.stringContaining('1 minutes of audio'),
      details: { quota: 'audioMinutes', limit: 1, used: 1.5, resetsAt: expect.stringMatching(/T00:00:00.000Z$/) },
    })
    const own = { id: 'app', name: 'App', createdAt: 0, webhook: null, quota: { audioMinutes: 2, jobs: 2 } }
    await engine.applications.putApplication(own)
    await submit()
    await expect(submit()).rejects.toMatchObject({ details: { quota: 'jobs', limit: 2, used: 2 } })
    const free = testEngine(workflow)
    await free.engine.run((await free.submit()).id)
    expect(await free.engine.usage('app')).toEqual({ jobs: 0, audioSeconds: 0, bytes: 0 })
  })
})
