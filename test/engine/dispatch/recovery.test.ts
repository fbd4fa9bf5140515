import { setTimeout as delay } from 'node:timers/promises'
import { Keyv } from 'keyv'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { keyvJobs } from '../../../src/adapters/stores/keyv/keyv-jobs.js'
import { memoryQueue } from '../../../src/adapters/queues/memory/memory-queue.js'
import { attemptPrefix } from '../../../src/core/engine/job/blob-keys.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import { bytes, gate, keys, recordingLogger, steppingClock, testEngine, textWorkflow } from '../harness.js'

const minute = 60 * 1000
const hour = 60 * minute

describe('a worker that loses its lease', () => {
  test('publishes nothing, and the job ends once, with the result of the worker that took over', async () => {
    const clock = steppingClock()
    const jobs = memoryJobs({ clock: clock.now })
    const blobs = memoryBlobs()
    const started = gate()
    const finish = gate()
    // The slow worker is cut off from the store: its heartbeats never arrive.
    const cutOff: JobStore = {
      ...jobs,
      apply: (id, change) => (change.kind === 'heartbeat' ? new Promise(() => {}) : jobs.apply(id, change)),
    }
    const slow = testEngine(
      textWorkflow(async () => {
        started.open()
        await finish.opened
      }),
      {},
      { jobs: cutOff, blobs },
    )
    const quick = testEngine(textWorkflow(), {}, { jobs, blobs })
    const job = await quick.submit()
    const slowRun = slow.engine.runOnce(job.id)
    await started.opened
    clock.advance(slow.engine.options.dispatch.leaseMs + 1)
    const won = await quick.engine.run(job.id)
    finish.open()
    expect(await slowRun).toBeUndefined()
    expect(won).toMatchObject({ status: 'SUCCEEDED', token: 2 })
    expect(await keys(blobs)).toEqual([won?.outputs?.text!.key])
    expect(slow.events).not.toContain('job.succeeded')
  })

  test('does not begin if the answer to its claim came when another had taken over', async () => {
    const clock = steppingClock()
    const jobs = memoryJobs({ clock: clock.now })
    const [claimed, answer] = [gate(), gate()]
    const late: JobStore = {
      ...jobs,
      claim: async (request) => {
        const job = await jobs.claim(request)
        claimed.open()
        await answer.opened
        return job
      },
    }
    const ran = vi.fn()
    const slow = testEngine(textWorkflow(ran), { dispatch: { leaseMs: 300 } }, { jobs: late })
    const quick = testEngine(textWorkflow(), {}, { jobs })
    const job = await quick.submit()
    const slowRun = slow.engine.runOnce(job.id)
    await claimed.opened
    clock.advance(301)
    await delay(301)
    await quick.engine.run(job.id)
    answer.open()
    expect(await slowRun).toBeUndefined()
    expect(ran).not.toHaveBeenCalled()
  })

  test('is stopped by the heartbeat that reports it', async () => {
    const jobs = memoryJobs()
    const started = gate()
    const { engine, submit } = testEngine(
      textWorkflow(({ signal, progress }) => {
        started.open()
        progress(0.5)
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      }),
      { dispatch: { leaseMs: 300 } },
      { jobs },
    )
    const job = await submit()
    const run = engine.run(job.id)
    await started.opened
    await jobs.apply(job.id, { kind: 'delete' })
    expect(await run).toBeUndefined()
  })

  test('a job whose workers die every time ends FAILED with worker_lost', async () => {
    const clock = steppingClock()
    const jobs = memoryJobs({ clock: clock.now })
    const { engine, submit } = testEngine(textWorkflow(), { dispatch: { maxLapses: 2 } }, { jobs })
    const job = await submit()
    for (let death = 0; death < 3; death++) {
      expect(await jobs.claim({ id: job.id, owner: 'doomed', leaseMs: 1000 })).toBeDefined()
      clock.advance(1001)
    }
    expect(await engine.run(job.id)).toMatchObject({
      status: 'FAILED',
      error: { code: 'INTERNAL_ERROR', reason: 'worker_lost' },
    })
  })
})

describe('close', () => {
  test('hands a running job back without counting the attempt, and another engine finishes it', async () => {
    const jobs = memoryJobs()
    const blobs = memoryBlobs()
    const started = gate()
    const first = testEngine(
      textWorkflow(({ signal }) => {
        started.open()
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      }),
      {},
      { jobs, blobs },
    )
    await first.engine.start()
    const job = await first.submit()
    await started.opened
    await first.engine.close({ timeoutMs: 0 })
    expect(await jobs.get(job.id)).toMatchObject({ status: 'QUEUED', attempts: 0, shutdownRequeues: 1 })
    await expect(first.submit()).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })

    const second = testEngine(textWorkflow(), {}, { jobs, blobs })
    await second.engine.start()
    expect(await second.until(job.id, 'SUCCEEDED')).toMatchObject({ attempts: 1 })
    await second.engine.close()
  })

  test('lets a running job finish within its time', async () => {
    const started = gate()
    const finish = gate()
    const { engine, submit, parts } = testEngine(
      textWorkflow(async () => {
        started.open()
        await finish.opened
      }),
    )
    await engine.start()
    const job = await submit()
    await started.opened
    const closed = engine.close({ timeoutMs: 30_000 })
    finish.open()
    await closed
    expect(await parts.jobs.get(job.id)).toMatchObject({ status: 'SUCCEEDED' })
  })
})

describe('the sweep', () => {
  test('finds jobs without a notification and those whose worker died', async () => {
    const clock = steppingClock(Date.now())
    const jobs = memoryJobs({ clock: clock.now })
    const forgotten = testEngine(textWorkflow(), {}, { jobs })
    const queued = await forgotten.submit()
    const orphaned = await forgotten.submit()
    await jobs.claim({ id: orphaned.id, owner: 'dead', leaseMs: 1000 })
    clock.advance(1001)
    // A new queue, as after a restart, without notifications for these jobs.
    const { engine, until } = testEngine(textWorkflow(), {}, { jobs })
    await engine.start()
    await until(queued.id, 'SUCCEEDED')
    await until(orphaned.id, 'SUCCEEDED')
    await engine.close()
  })

  test('takes no running job from the only process of a store whose clock was set', async () => {
    const { now } = Date
    onTestFinished(() => void (Date.now = now))
    const [started, finish] = [gate(), gate()]
    const workflow = textWorkflow(async () => {
      started.open()
      await finish.opened
    })
    const jobs = memoryJobs({ clock: () => Date.now() })
    const { engine, submit, until } = testEngine(workflow, { dispatch: { concurrency: 3 } }, { jobs })
    await engine.start()
    const { id } = await submit()
    await started.opened
    Date.now = () => now() + hour
    const other = await submit()
    await engine.sweep()
    finish.open()
    await until(other.id, 'SUCCEEDED')
    const { history } = await until(id, 'SUCCEEDED')
    expect(history.map(({ outcome }) => outcome)).toEqual(['succeeded'])
    await engine.close()
  })

  test('runs a job before its deadline where the clock of the store is a day behind', async () => {
    const now = () => Date.now() - 24 * hour
    const { engine } = testEngine(textWorkflow(), {}, { jobs: memoryJobs({ clock: now }) })
    const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {}, deadline: now() + hour })
    expect(await engine.run(job.id)).toMatchObject({ status: 'SUCCEEDED' })
  })

  test('removes results when their time is over and keeps the job in the list', async () => {
    const clock = steppingClock(Date.now())
    const { engine, submit, parts } = testEngine(textWorkflow(), {}, { jobs: memoryJobs({ clock: clock.now }) })
    const job = await submit()
    await engine.run(job.id)
    clock.advance(72 * hour)
    expect(await engine.sweep()).toMatchObject({ expired: 1 })
    expect(await engine.sweep()).toMatchObject({ expired: 0 })
    expect(await keys(parts.blobs)).toEqual([])
    expect(await engine.get(job.id)).toMatchObject({ status: 'SUCCEEDED', expired: true })
  })

  test('forgets jobs that ended long ago', async () => {
    const clock = steppingClock()
    const { engine, submit } = testEngine(textWorkflow(), {}, { jobs: memoryJobs({ clock: clock.now }) })
    const ended = await submit()
    await engine.run(ended.id)
    const waiting = await submit()
    // A minute less than the whole time: between two readings, the engine adds its own delays.
    clock.advance(30 * 24 * hour - minute)
    expect(await engine.sweep()).toMatchObject({ purged: 0 })
    clock.advance(minute + 1)
    expect(await engine.sweep()).toMatchObject({ purged: 1 })
    expect(await engine.get(ended.id)).toBeUndefined()
    expect(await engine.get(waiting.id)).toBeDefined()
  })

  test('removes documents that have expired, which messages alone do not', async () => {
    const clock = steppingClock()
    const jobs = memoryJobs({ clock: clock.now })
    const { engine } = testEngine(textWorkflow(), {}, { jobs })
    await jobs.documents.put({ kind: 'k', key: 'brief', value: 1, ttlMs: minute })
    await jobs.documents.put({ kind: 'k', key: 'long', value: 1, ttlMs: hour })
    const remove = vi.spyOn(jobs.documents, 'removeExpired')
    clock.advance(2 * minute)
    await engine.sendWebhooks()
    expect(remove).not.toHaveBeenCalled()
    await engine.sweep()
    expect(await Promise.all(remove.mock.results.map(({ value }) => value as Promise<number>))).toEqual([1])
    expect(await jobs.documents.get('k', 'long')).toBeDefined()
  })

  test('removes uploads that no job used and keeps those that a job waits for', async () => {
    const clock = steppingClock()
    const blobs = memoryBlobs({ clock: clock.now })
    const { engine } = testEngine(textWorkflow(), {}, { blobs })
    await blobs.put('uploads/app/used', bytes('a'))
    await blobs.put('uploads/app/unused', bytes('b'))
    await engine.submit({ app: 'app', workflow: 'test/text', params: {}, uploads: { inputUrl: 'uploads/app/used' } })
    clock.advance(24 * hour)
    expect(await engine.sweep({ files: true })).toMatchObject({ uploads: 0 })
    clock.advance(1)
    expect(await engine.sweep({ files: true })).toMatchObject({ uploads: 1 })
    expect(await keys(blobs)).toEqual(['uploads/app/used'])
  })

  test('removes the files of claims that lost and of jobs that are gone, and none of a live result', async () => {
    const clock = steppingClock()
    const blobs = memoryBlobs({ clock: clock.now })
    const { engine, submit } = testEngine(textWorkflow(), {}, { blobs })
    const job = await submit()
    const done = await engine.run(job.id)
    await blobs.put(`${attemptPrefix({ ...job, token: 0 })}text.txt`, bytes('of a lost claim'))
    await blobs.put(
      `${attemptPrefix({ ...job, id: '00000000-0000-4000-8000-000000000000', token: 1 })}text.txt`,
      bytes('of no job'),
    )
    clock.advance(2 * hour)
    expect(await engine.sweep({ files: true })).toMatchObject({ orphans: 2 })
    expect(await keys(blobs)).toEqual([done?.outputs?.text!.key])
  })
})

describe('two claims with one token, after a job store lost its last commits', () => {
  test('have files of their own: the loser removes none of the winner', async () => {
    const [before, after] = [memoryJobs(), memoryJobs()]
    const blobs = memoryBlobs()
    const started = gate()
    const finish = gate()
    const late = testEngine(
      textWorkflow(async () => {
        started.open()
        await finish.opened
      }),
      {},
      { jobs: before, blobs },
    )
    const next = testEngine(textWorkflow(), {}, { jobs: after, blobs })
    const job = await late.submit()
    await after.create(job)
    const lateRun = late.engine.run(job.id)
    await started.opened
    const won = await next.engine.run(job.id)
    await before.apply(job.id, { kind: 'delete' })
    finish.open()
    expect(await lateRun).toBeUndefined()
    expect(won).toMatchObject({ status: 'SUCCEEDED', token: 1 })
    expect(await keys(blobs)).toEqual([won?.outputs?.text?.key])
  })
})

describe('health', () => {
  test('warns of a queue that does not answer, although jobs are accepted and run', async () => {
    const queue = { ...memoryQueue(), check: () => Promise.reject(new Error('ECONNREFUSED')) }
    const { engine } = testEngine(textWorkflow(), {}, { queue })
    expect(await engine.health()).toMatchObject({
      ok: true,
      problems: [],
      warnings: [expect.stringContaining('The queue does not answer.')],
    })
  })

  test('a queue that fails is told in the log once, until a notification succeeds', async () => {
    const { logger, lines } = recordingLogger()
    let isDown = true
    const notify = async () => {
      if (isDown) throw new Error('ECONNREFUSED')
    }
    const { submit } = testEngine(textWorkflow(), { logger }, { queue: { ...memoryQueue(), notify } })
    const told = () => lines.filter(({ level }) => level === 'warn').length
    for (let n = 0; n < 3; n++) await submit()
    expect(told()).toBe(1)
    isDown = false
    await submit()
    isDown = true
    await submit()
    expect(told()).toBe(2)
  })

  test('notices that the backend of a store which counts by an index in memory is down', async () => {
    let isDown = false
    class Server extends Map<string, unknown> {
      override get(key: string) {
        if (isDown) throw new Error('ECONNREFUSED')
        return super.get(key)
      }
    }
    const { engine, submit } = testEngine(
      textWorkflow(),
      {},
      { jobs: keyvJobs({ keyv: new Keyv({ store: new Server() }) }) },
    )
    await submit()
    expect(await engine.health()).toMatchObject({ ok: true, queued: 1 })
    isDown = true
    expect(await engine.health()).toMatchObject({ ok: false, problems: ['The job store does not answer.'] })
  })

  test('reports jobs that lost their worker and that no other takes over', async () => {
    const clock = steppingClock(Date.now() - hour)
    const jobs = memoryJobs({ clock: clock.now })
    const { engine, submit } = testEngine(textWorkflow(), {}, { jobs })
    const job = await submit()
    expect(await engine.health()).toMatchObject({ ok: true, problems: [], queued: 1 })
    await jobs.claim({ id: job.id, owner: 'dead', leaseMs: 1000 })
    clock.advance(hour)
    // A load balancer would remove every node, although nodes still accept and show jobs.
    expect(await engine.health()).toMatchObject({ ok: true, warnings: [expect.stringContaining('lost their worker')] })
    await engine.run(job.id)
    expect(await engine.health()).toMatchObject({ ok: true, problems: [] })
  })
})
