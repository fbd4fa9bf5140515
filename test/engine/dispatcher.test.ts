import { spawnSync } from 'node:child_process'
import { getEventListeners } from 'node:events'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { memoryJobs } from '../../src/adapters/memory.js'
import { memoryQueue } from '../../src/adapters/queues/memory/memory-queue.js'
import type { EngineSettings } from '../../src/core/engine/options.js'
import type { JobQueue } from '../../src/core/engine/ports/job-queue.js'
import type { JobStore } from '../../src/core/engine/ports/job-store.js'
import { inlineRunner } from '../../src/core/engine/runner/inline-runner.js'
import type { Workflow } from '../../src/core/engine/workflow/workflow.js'
import { loopback } from '../fetch/loopback-server.js'
import { gate, recordingLogger, testEngine, textWorkflow } from './harness.js'

const never = { sweepIntervalMs: 3_600_000 }
const soon = () => new Promise((resolve) => setTimeout(resolve, 20))

/** A worker with one lane, or more, and a queue whose notifications are those of the test. */
function notified(
  workflow: Workflow,
  traits: Partial<JobQueue['traits']> = {},
  settings: EngineSettings = {},
  concurrency = 1,
) {
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
  const worker = testEngine(workflow, { ...settings, dispatch: { concurrency, ...never } }, { queue })
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

  test('for one job goes on to nobody where there is room for more', async () => {
    const finish = gate()
    const workflow = textWorkflow(() => finish.opened)
    const { engine, submit, until, notify, hear } = notified(workflow, {}, {}, 2)
    await engine.start()
    const job = await submit()
    notify.mockClear()
    await hear()
    await until(job.id, 'STARTED')
    await soon()
    finish.open()
    await until(job.id, 'SUCCEEDED')
    expect(notify).not.toHaveBeenCalled()
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

describe('a worker that stops', () => {
  const until = ({ signal }: { signal: AbortSignal }) =>
    new Promise<never>((_, reject) => {
      const fail = () => reject(signal.reason as Error)
      if (signal.aborted) fail()
      else signal.addEventListener('abort', fail)
    })

  test('passes on what it is notified of', async () => {
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

  test('hands back its jobs at once where its queue cannot be left, and says so', async () => {
    const began = gate()
    const queue: JobQueue = {
      ...memoryQueue(),
      subscribe: async () => ({ stop: () => Promise.reject(new Error('no queue')) }),
    }
    const workflow = textWorkflow((context) => (began.open(), until(context)))
    const { engine, parts, submit } = testEngine(workflow, { dispatch: never }, { queue })
    const { id } = await submit()
    await engine.start()
    await began.opened
    await expect(engine.close({ timeoutMs: 50_000 })).rejects.toThrow('dispatcher')
    await expect.poll(async () => (await parts.jobs.get(id))?.shutdownRequeues).toBe(1)
  })

  test('leaves nothing at the signal of a run that has ended', async () => {
    const { engine, submit } = testEngine(textWorkflow())
    const { signal } = new AbortController()
    await engine.run((await submit()).id, { signal })
    expect(getEventListeners(signal, 'abort')).toEqual([])
    await engine.close()
  })
})

test('a start removes what dead processes left, of which there is nothing to run', async () => {
  const scratchDirectory = await mkdtemp(join(tmpdir(), 'stemwork-dispatcher-'))
  onTestFinished(() => rm(scratchDirectory, { recursive: true }))
  const { pid } = spawnSync(process.execPath, ['-e', ''])
  await mkdir(join(scratchDirectory, `stemwork-scratch.${hostname().replace(/[^\w-]/g, '')}.${pid}.1.abcdef`))
  const { engine } = testEngine(textWorkflow(), { scratchDirectory })
  await engine.start()
  expect(await readdir(scratchDirectory)).toEqual([])
  await engine.close()
})

test('a slow download keeps no slot from other jobs', async () => {
  const server = await loopback(() => {})
  const inputs = ['inputUrl']
  const download = { ...textWorkflow(), id: 'test/download', inputs, params: z.object({ inputUrl: z.string() }) }
  const text = textWorkflow()
  const workflows = [download, text] as Workflow[]
  const { engine, until } = testEngine(
    text,
    {
      dispatch: { concurrency: 1, ...never },
      inputs: { slowInputs: 4, slowInputsPerApplication: 1 },
      fetch: server.policy,
    },
    { workflows, runner: inlineRunner({ resolve: () => text }) },
  )
  const submit = async (app: string, workflow: Workflow, params = {}) =>
    (await engine.submit({ app, workflow: workflow.id, params })).job
  await engine.start()
  const slow = await submit('slow', download, { inputUrl: `${server.url}song` })
  await expect.poll(() => server.requests.length).toBe(1)
  const other = await submit('other', text)
  await until(other.id, 'SUCCEEDED')
  expect(await engine.get(slow.id)).toMatchObject({ status: 'STARTED', attempts: 1 })
  await engine.close({ timeoutMs: 0 })
})
