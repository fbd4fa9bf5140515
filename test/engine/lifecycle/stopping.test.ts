import { getEventListeners } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, test, vi } from 'vitest'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { memoryQueue } from '../../../src/adapters/queues/memory/memory-queue.js'
import { localFile } from '../../../src/core/engine/intake/local-file.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import type { JobQueue } from '../../../src/core/engine/ports/job-queue.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import { gate, recordingLogger, testEngine, textWorkflow } from '../harness.js'
import { never, notified, soon } from '../notified.js'

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

describe('a worker that stops', () => {
  const until = ({ signal }: { signal: AbortSignal }) =>
    new Promise<never>((_, reject) => {
      const fail = () => reject(signal.reason as Error)
      if (signal.aborted) fail()
      else signal.addEventListener('abort', fail)
    })

  test('passes on its notifications', async () => {
    const { engine, notify, hear } = notified(textWorkflow())
    await engine.start()
    await engine.close()
    await hear()
    expect(notify).toHaveBeenCalledTimes(1)
  })

  test('hands back a job whose claim was answered late', async () => {
    const [asked, answered] = [gate(), gate()]
    const memory = memoryJobs()
    const late: JobStore = {
      ...memory,
      claim: async (request) => (asked.open(), await answered.opened, memory.claim(request)),
      claimSeveral: undefined,
    }
    const { engine, submit } = testEngine(textWorkflow(until), { dispatch: never }, { jobs: late })
    const { id } = await submit()
    await engine.start()
    await asked.opened
    const closed = engine.close({ timeoutMs: 1 })
    await soon()
    answered.open()
    await closed
    expect(await memory.get(id)).toMatchObject({ status: 'QUEUED', attempts: 0, shutdownRequeues: 1 })
  })

  test('hands back its jobs at once if its subscription cannot be stopped, and says so', async () => {
    const queue: JobQueue = {
      ...memoryQueue(),
      subscribe: async () => ({ stop: () => Promise.reject(new Error('no queue')) }),
    }
    // Stopped by the signal, not by the end of the runner, which has no part in this stage.
    const blobs: BlobStore = { ...memoryBlobs(), get: (_, options) => until({ signal: options!.signal! }) }
    const workflow = { ...textWorkflow(), inputs: ['inputUrl'] }
    const worker = testEngine(workflow, { dispatch: never }, { queue, blobs })
    const inputs = { inputUrl: localFile(fileURLToPath(import.meta.url)) }
    const { job } = await worker.engine.submit({ app: 'app', workflow: workflow.id, params: {}, inputs })
    await worker.engine.start()
    await worker.until(job.id, 'STARTED')
    await expect(worker.engine.close({ timeoutMs: 50_000 })).rejects.toThrow('dispatcher')
    await expect.poll(async () => (await worker.parts.jobs.get(job.id))?.shutdownRequeues).toBe(1)
  })

  test('leaves nothing at the signal of a run that has ended', async () => {
    const { engine, submit } = testEngine(textWorkflow())
    const { signal } = new AbortController()
    await engine.run((await submit()).id, { signal })
    expect(getEventListeners(signal, 'abort')).toEqual([])
    await engine.close()
  })

  test('gets no more notifications, even while a job still runs, and asks the store for nothing', async () => {
    const { logger, lines } = recordingLogger()
    const finish = gate()
    const memory = memoryJobs()
    const asked: string[] = []
    const jobs: JobStore = {
      ...memory,
      traits: { scope: 'shared' },
      claim: (request) => (asked.push('claim'), memory.claim(request)),
      claimSeveral: undefined,
      due: (reason, limit) => (asked.push(reason), memory.due(reason, limit)),
    }
    const workflow = textWorkflow(() => finish.opened)
    const { engine, submit, until, hear } = notified(workflow, {}, { logger }, 1, { jobs })
    await engine.start()
    const job = await submit()
    await hear()
    await until(job.id, 'STARTED')
    const heard = hear()
    const closed = engine.close({ timeoutMs: 10_000 })
    await heard
    asked.length = 0
    finish.open()
    await closed
    await hear()
    await soon()
    expect([asked, lines]).toEqual([[], []])
  })

  test('has the time of its stop, though it was being drained', async () => {
    const { engine, parts, submit, until } = testEngine(
      textWorkflow(() => new Promise((resolve) => setTimeout(resolve, 400))),
      { owner: 'worker', dispatch: { leaseMs: 300, graceMs: 100, ...never } },
    )
    await engine.start()
    const { id } = await submit()
    await until(id, 'STARTED')
    const { seenAt } = (await engine.workers())[0]!
    await engine.setWorkerState('worker', 'draining')
    await expect.poll(async () => (await engine.workers())[0]?.seenAt, { interval: 1 }).toBeGreaterThan(seenAt)
    await engine.close({ timeoutMs: 10_000 })
    expect(await parts.jobs.get(id)).toMatchObject({ status: 'SUCCEEDED', shutdownRequeues: 0 })
  })

  test.each([Infinity, 2 ** 31])('waits for its jobs if told to wait %s ms', async (timeoutMs) => {
    const [started, finish] = [gate(), gate()]
    const { engine, parts, submit } = testEngine(
      textWorkflow(() => (started.open(), finish.opened)),
      // The longest of both: their sum is longer than a timer of Node.js.
      { dispatch: { leaseMs: 2 ** 31 - 1, sweepIntervalMs: 2 ** 31 - 1 } },
    )
    await engine.start()
    const { id } = await submit()
    await started.opened
    const closed = engine.close({ timeoutMs })
    await soon()
    finish.open()
    await closed
    expect(await parts.jobs.get(id)).toMatchObject({ status: 'SUCCEEDED', shutdownRequeues: 0 })
  })

  test('before its subscription was refused has nothing to leave', async () => {
    const [asked, refused] = [gate(), gate()]
    const queue: JobQueue = {
      ...memoryQueue(),
      subscribe: async () => (asked.open(), await refused.opened, Promise.reject(new Error('no queue'))),
    }
    const { engine } = testEngine(textWorkflow(), { dispatch: never }, { queue })
    const started = engine.start()
    await asked.opened
    const closed = engine.close()
    refused.open()
    await expect(started).rejects.toThrow('no queue')
    await closed
  })

  test('ends a run that waits for the job of a lost worker', async () => {
    const jobs: JobStore = { ...memoryJobs(), traits: { scope: 'shared' } }
    const { engine, submit } = testEngine(textWorkflow(), { dispatch: { leaseMs: 300, ...never } }, { jobs })
    await submit()
    const claim = { owner: 'dead', nonce: 'n', leaseMs: 1, labels: [], workflows: ['test/text'] }
    await jobs.claim({ ...claim, lapsedBefore: undefined })
    await soon()
    const run = engine.run()
    await soon()
    await engine.close()
    expect(await run).toBeUndefined()
  })
})
