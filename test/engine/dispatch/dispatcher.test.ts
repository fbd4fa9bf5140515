import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { memoryJobs } from '../../../src/adapters/memory.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import { inlineRunner } from '../../../src/core/engine/runner/inline-runner.js'
import { growingOutputFile } from '../../../src/core/engine/runner/run-folder.js'
import type { Workflow } from '../../../src/core/engine/workflow/workflow.js'
import { loopback } from '../../fetch/loopback-server.js'
import { gate, recordingLogger, testEngine, textWorkflow } from '../harness.js'
import { never, notified, soon } from '../notified.js'

describe('a notification', () => {
  test.each([
    ['one', 1],
    ['all', 0],
  ] as const)('that a full worker gets is passed on to another if it woke %s', async (wakes, times) => {
    const [begin, finish] = [gate(), gate()]
    const { engine, submit, until, notify, hear } = notified(
      textWorkflow(() => (begin.open(), finish.opened)),
      { wakes },
    )
    await engine.start()
    const job = await submit()
    await hear()
    // The job runs, so the worker knows that it is full.
    await begin.opened
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

  test('for more jobs than there is room for is passed on once', async () => {
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

  test('for one job is not passed on if there is room for more', async () => {
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

  test('for which there is no job is not passed on', async () => {
    const { engine, notify, hear } = notified(textWorkflow())
    await engine.start()
    await hear()
    await soon()
    expect(notify).not.toHaveBeenCalled()
    await engine.close()
  })

  test('that cannot be passed on is logged, and the worker continues', async () => {
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

test('a running job is known to run here, and its results can be read as they grow', async () => {
  const [began, finish] = [gate(), gate()]
  const workflow = textWorkflow(async ({ directory }) => {
    await writeFile(join(directory, growingOutputFile('text', 'text.txt')), 'la')
    began.open()
    await finish.opened
  })
  const { engine, submit, until } = testEngine(workflow)
  await engine.start()
  const { id } = await submit()
  expect(engine.isRunningHere(id)).toBe(false)
  await began.opened
  const growing = await engine.growingResult(await until(id, 'STARTED'), 'text')
  expect([engine.isRunningHere(id), growing?.bytes]).toEqual([true, 2])
  await growing?.close()
  finish.open()
  await until(id, 'SUCCEEDED')
  await engine.close()
  expect(engine.isRunningHere(id)).toBe(false)
})

test('a start removes the leftovers of dead processes, even if there is nothing to run', async () => {
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

test('an application whose slow download is over gets a free slot at once', async () => {
  const answers: ServerResponse[] = []
  const server = await loopback((_, response) => answers.push(response))
  const gates = Array.from({ length: 5 }, () => gate())
  let started = 0
  const text = textWorkflow(() => gates[started++]?.opened)
  const inputs = ['inputUrl']
  const download = { ...text, id: 'test/download', inputs, params: z.object({ inputUrl: z.string() }) }
  const { engine, until } = testEngine(
    text,
    {
      dispatch: { concurrency: 3, ...never },
      inputs: { slowInputs: 4, slowInputsPerApplication: 1 },
      fetch: server.policy,
    },
    { workflows: [download, text] as Workflow[], runner: inlineRunner({ resolve: () => text }) },
  )
  const submit = async (app: string, workflow: Workflow, params = {}) =>
    (await engine.submit({ app, workflow: workflow.id, params })).job
  const slow = () => submit('slow', download, { inputUrl: `${server.url}song` })
  await engine.start()
  await slow()
  await expect.poll(() => answers.length).toBe(1)
  // Three others run, so the download has given up its slot.
  const others = [await submit('other', text), await submit('other', text), await submit('other', text)]
  await expect.poll(() => started).toBe(3)
  gates[1]?.open()
  gates[2]?.open()
  await expect.poll(async () => (await engine.list({ statuses: ['SUCCEEDED'], limit: 9 })).length).toBe(2)
  await slow()
  await soon()
  expect(answers).toHaveLength(1)
  answers[0]?.end('song')
  await expect.poll(() => answers.length).toBe(2)
  expect(started).toBe(4)
  answers[1]?.end('song')
  for (const each of gates) each.open()
  for (const { id } of others) await until(id, 'SUCCEEDED')
  await engine.close()
})
