import { describe, expect, test } from 'vitest'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { memoryQueue } from '../../../src/adapters/queues/memory/memory-queue.js'
import type { JobQueue } from '../../../src/core/engine/ports/job-queue.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import { gate, testEngine, textWorkflow } from '../harness.js'

const never = { sweepIntervalMs: 3_600_000 }

/** A queue whose notifications never arrive. */
function deafQueue(): JobQueue {
  return { ...memoryQueue(), notify: async () => {}, subscribe: async () => ({ async stop() {} }) }
}

/** Counts granted and empty claims. */
function watched(jobs: JobStore) {
  const claims = { granted: 0, empty: 0 }
  const store: JobStore = {
    ...jobs,
    async claim(request) {
      const job = await jobs.claim(request)
      claims[job ? 'granted' : 'empty']++
      return job
    },
  }
  return { store, claims }
}

describe('a worker', () => {
  test('asks once for as many jobs as it has room for, and again when it has room again', async () => {
    const jobs = memoryJobs()
    const asked: number[] = []
    const finish = gate()
    const store: JobStore = {
      ...jobs,
      async claimSeveral(request, { max }) {
        asked.push(max)
        const found = []
        for (let job; found.length < max && (job = await jobs.claim(request));) found.push(job)
        return found
      },
    }
    const { engine, submit, until } = testEngine(
      textWorkflow(() => finish.opened),
      { dispatch: { concurrency: 4, ...never } },
      { jobs: store },
    )
    const submitted = await Promise.all(Array.from({ length: 7 }, () => submit()))
    await engine.start()
    await expect.poll(() => engine.count({ statuses: ['STARTED'] })).toBe(4)
    expect(asked).toEqual([4])
    finish.open()
    for (const { id } of submitted) await until(id, 'SUCCEEDED')
    await engine.close()
    expect(Math.max(...asked)).toBe(4)
  })

  test('runs what was claimed before the store failed in the middle', async () => {
    const jobs = memoryJobs()
    let claims = 0
    const store: JobStore = {
      ...jobs,
      claim: (request) => (++claims === 3 ? Promise.reject(new Error('store is away')) : jobs.claim(request)),
    }
    const { engine, submit, until } = testEngine(
      textWorkflow(),
      { dispatch: { concurrency: 5, ...never } },
      { jobs: store },
    )
    const submitted = await Promise.all(Array.from({ length: 4 }, () => submit()))
    await engine.start()
    for (const { id } of submitted) expect((await until(id, 'SUCCEEDED')).lapses).toBe(0)
    await engine.close()
  })

  test('runs as many jobs at once as it has room for, and no more', async () => {
    let running = 0
    let most = 0
    const finish = gate()
    const started = gate()
    const { engine, submit, until } = testEngine(
      textWorkflow(async () => {
        most = Math.max(most, ++running)
        if (running === 3) started.open()
        await finish.opened
        running--
      }),
      { dispatch: { concurrency: 3, ...never } },
    )
    await engine.start()
    const jobs = await Promise.all(Array.from({ length: 12 }, () => submit()))
    await started.opened
    expect(await engine.count({ statuses: ['STARTED'] })).toBe(3)
    finish.open()
    await Promise.all(jobs.map(({ id }) => until(id, 'SUCCEEDED')))
    expect(most).toBe(3)
    await engine.close()
  })

  test('that gets no notifications works by the ticks of its sweep', async () => {
    const { engine, submit, until } = testEngine(
      textWorkflow(),
      { dispatch: { concurrency: 2, sweepIntervalMs: 20 } },
      { queue: deafQueue() },
    )
    await engine.start()
    const jobs = await Promise.all(Array.from({ length: 10 }, () => submit()))
    for (const { id } of jobs) await until(id, 'SUCCEEDED')
    await engine.close()
  })

  test('is not harmed by ten thousand notifications, and asks the store only a few times', async () => {
    const { store, claims } = watched(memoryJobs())
    const queue = memoryQueue()
    const { engine, submit, until } = testEngine(textWorkflow(), { dispatch: never }, { queue, jobs: store })
    await engine.start()
    await Promise.all(Array.from({ length: 10_000 }, () => queue.notify()))
    const job = await submit()
    await until(job.id, 'SUCCEEDED')
    await engine.close()
    expect(claims.granted).toBe(1)
    expect(claims.empty).toBeLessThan(10)
  })

  test('looks again if a notification arrived while the store was answering that there is nothing', async () => {
    const jobs = memoryJobs()
    const asked = gate()
    const answer = gate()
    let isFirst = true
    const slow: JobStore = {
      ...jobs,
      async claim(request) {
        if (!isFirst) return jobs.claim(request)
        isFirst = false
        const found = await jobs.claim(request)
        asked.open()
        await answer.opened
        return found
      },
    }
    const { engine, submit, until } = testEngine(
      textWorkflow(),
      { dispatch: { concurrency: 1, ...never } },
      { jobs: slow },
    )
    await engine.start()
    await asked.opened
    const job = await submit()
    answer.open()
    await until(job.id, 'SUCCEEDED')
    await engine.close()
  })

  test('continues after the store could not be asked', async () => {
    const jobs = memoryJobs()
    let failures = 3
    const store: JobStore = {
      ...jobs,
      claim: (request) => (failures-- > 0 ? Promise.reject(new Error('store is away')) : jobs.claim(request)),
    }
    const { engine, submit, until } = testEngine(
      textWorkflow(),
      { dispatch: { sweepIntervalMs: 20 } },
      { jobs: store, queue: deafQueue() },
    )
    await engine.start()
    const job = await submit()
    await until(job.id, 'SUCCEEDED')
    await engine.close()
  })

  test('that is full leaves notifications to another worker of the same queue', async () => {
    const shared = { jobs: memoryJobs(), blobs: memoryBlobs(), queue: memoryQueue() }
    const finish = gate()
    const busy = testEngine(
      textWorkflow(() => finish.opened),
      { dispatch: { concurrency: 1, ...never } },
      shared,
    )
    const idle = testEngine(textWorkflow(), { dispatch: { concurrency: 1, ...never } }, shared)
    const first = await busy.submit()
    await busy.engine.start()
    await busy.until(first.id, 'STARTED')
    await idle.engine.start()
    // Either worker may receive each notification, including the busy one.
    for (let n = 0; n < 5; n++) await idle.until((await busy.submit()).id, 'SUCCEEDED')
    finish.open()
    await busy.until(first.id, 'SUCCEEDED')
    await busy.engine.close()
    await idle.engine.close()
  })

  test('wakes the others when one notification stands for more jobs than it has room for', async () => {
    const jobs = memoryJobs()
    const queue = memoryQueue()
    const shared = { jobs, blobs: memoryBlobs(), queue }
    const finish = gate()
    const workflow = textWorkflow(() => finish.opened)
    const workers = Array.from({ length: 3 }, () =>
      testEngine(workflow, { dispatch: { concurrency: 2, ...never } }, shared),
    )
    // Submitted over a queue whose notifications are lost: the only notification is the one below.
    const front = testEngine(workflow, {}, { ...shared, queue: deafQueue() })
    for (const { engine } of workers) await engine.start()
    const submitted = await Promise.all(Array.from({ length: 6 }, () => front.submit()))
    await queue.notify()
    for (const { id } of submitted) await expect.poll(async () => (await jobs.get(id))?.status).toBe('STARTED')
    finish.open()
    for (const { id } of submitted) await expect.poll(async () => (await jobs.get(id))?.status).toBe('SUCCEEDED')
    for (const { engine } of workers) await engine.close()
  })

  test('runs a retry when its time has come, without waiting for the sweep', async () => {
    let attempts = 0
    const { engine, submit, until } = testEngine(
      textWorkflow(() => {
        if (++attempts < 3) throw new Error('passes')
      }),
      { dispatch: { retryDelayMs: 30, ...never } },
    )
    await engine.start()
    const job = await submit()
    expect(await until(job.id, 'SUCCEEDED')).toMatchObject({ attempts: 3 })
    await engine.close()
  })

  test('lets applications take turns, whatever the order of their submits', async () => {
    const order: string[] = []
    const { engine } = testEngine(
      textWorkflow(({ params }) => void order.push(String(params.name))),
      { dispatch: { concurrency: 1, ...never } },
    )
    for (const name of ['a1', 'a2', 'a3', 'b1', 'c1', 'c2'])
      await engine.submit({ app: name[0]!, workflow: 'test/text', params: { name } })
    await engine.start()
    await expect.poll(() => order.length).toBe(6)
    expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'c2', 'a3'])
    await engine.close()
  })
})
