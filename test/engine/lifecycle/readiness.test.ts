import { describe, expect, test } from 'vitest'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import type { Runner } from '../../../src/core/engine/ports/runner.js'
import { Readiness } from '../../../src/core/engine/runner/readiness.js'
import type { Workflow } from '../../../src/core/engine/workflow/workflow.js'
import type { EngineParts } from '../../../src/core/engine/engine.js'
import { inlineRunner } from '../../../src/core/engine/runner/inline-runner.js'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { recordingLogger, testEngine, textWorkflow } from '../harness.js'

const inChild = (id: string): Workflow => ({
  ...textWorkflow(() => {}, id),
  module: { url: 'file:///x.mjs', settings: {} },
})

/** A runner that counts its prepare calls; `error` makes them fail. */
function countingRunner() {
  const asked: string[] = []
  const state: { error: Error | undefined } = { error: undefined }
  const runner: Runner = {
    run: () => Promise.reject(new Error('nothing is run here')),
    async prepare({ workflow }) {
      asked.push(workflow)
      if (state.error) throw state.error
      return {}
    },
    status: () => ({ slots: 1, busy: 0, restarts: 0 }),
    async close() {},
  }
  return { runner, asked, state }
}
const missing = new StemworkError('MISSING_DEPENDENCY', 'It is missing. Install it.')

test('each workflow of a child process is prepared once, and those of the host not at all', async () => {
  const { runner, asked } = countingRunner()
  const readiness = new Readiness({
    runner,
    workflows: [inChild('test/a'), textWorkflow(), inChild('test/b')],
    logger: silentLogger,
  })
  await Promise.all([readiness.check(), readiness.check()])
  await readiness.check({ again: true })
  expect(asked).toEqual(['test/a', 'test/b'])
  readiness.forget()
  await readiness.check()
  expect(asked).toHaveLength(4)
})

test('a failure is logged once and cached for 30 s, then checked again', async () => {
  let now = 0
  const { runner, asked, state } = countingRunner()
  const { logger, lines } = recordingLogger()
  const readiness = new Readiness({ runner, workflows: [inChild('test/a')], logger, clock: () => now })
  state.error = missing
  for (now of [0, 1, 29_999]) await expect(readiness.check()).rejects.toBe(missing)
  expect(asked).toHaveLength(1)
  expect(lines).toEqual([{ level: 'error', fields: { err: missing } }])
  state.error = undefined
  await readiness.check({ again: true })
  expect(asked).toHaveLength(2)
})

test('an engine that only submits to a shared store prepares nothing; one that is started or alone does', async () => {
  const shared = { ...memoryJobs(), traits: { scope: 'shared' } as const }
  const { runner, asked } = countingRunner()
  const front = testEngine(inChild('test/a'), {}, { runner, jobs: shared })
  expect(await front.engine.health()).toMatchObject({ ok: true })
  expect(asked).toEqual([])
  await front.engine.start()
  expect(asked).toEqual(['test/a'])
  expect(await front.engine.health()).toMatchObject({ ok: true })
  expect(asked).toEqual(['test/a'])
  await front.engine.close()
  const alone = testEngine(inChild('test/a'), {}, { runner })
  expect(await alone.engine.health()).toMatchObject({ ok: true })
  expect(asked).toHaveLength(2)
  await alone.engine.close()
})

test('an engine that is not ready does not start, takes no job, and starts once it is', async () => {
  const { runner, state } = countingRunner()
  const { engine, submit } = testEngine(inChild('test/a'), {}, { runner })
  state.error = missing
  await expect(engine.start()).rejects.toBe(missing)
  expect(await engine.health()).toMatchObject({
    ok: false,
    problems: ['Jobs cannot run in this process. It is missing. Install it.'],
  })
  await expect(submit()).rejects.toMatchObject({
    code: 'WORKFLOW_UNAVAILABLE',
    message: 'The workflow test/a cannot run at present: It is missing. Install it.',
  })
  state.error = undefined
  await engine.start()
  expect(await engine.health()).toMatchObject({ ok: true })
  expect((await submit()).status).toBe('QUEUED')
  await engine.close()
})

describe('a workflow that lacks something', () => {
  const lacking = 'test/lacking'
  const withOthers = (parts: Partial<EngineParts> = {}) => {
    const { runner, state } = countingRunner()
    state.error = missing
    const inline = inlineRunner({ resolve: () => textWorkflow() })
    const workflows = [textWorkflow(), inChild(lacking)]
    return {
      ...testEngine(textWorkflow(), {}, { runner: { ...inline, prepare: runner.prepare }, workflows, ...parts }),
      state,
    }
  }

  test('is unavailable with the reason, while the others run, until the missing part exists', async () => {
    const { engine, submit, until, state } = withOthers()
    await engine.start()
    expect([...engine.unavailableWorkflows()]).toEqual([[lacking, 'It is missing. Install it.']])
    expect(await engine.health()).toMatchObject({
      ok: true,
      warnings: [`The workflow ${lacking} is unavailable: It is missing. Install it.`],
    })
    await expect(submit({}, lacking)).rejects.toMatchObject({ code: 'WORKFLOW_UNAVAILABLE', retryable: true })
    const batch = { app: 'app', name: 'batch', jobs: [{ workflow: lacking }] }
    await expect(engine.submitBatch(batch)).rejects.toMatchObject({ code: 'WORKFLOW_UNAVAILABLE' })
    await until((await submit()).id, 'SUCCEEDED')
    state.error = undefined
    await engine.ready()
    expect(engine.unavailableWorkflows().size).toBe(0)
    expect((await submit({}, lacking)).status).toBe('QUEUED')
    await engine.close()
  })

  test('is left to the workers that have it, as the list of workers shows', async () => {
    const jobs = { ...memoryJobs(), traits: { scope: 'shared' } as const }
    const { engine, submit, until } = withOthers({ jobs })
    await engine.start()
    const left = await submit({}, lacking)
    await until((await submit()).id, 'SUCCEEDED')
    expect(await engine.get(left.id)).toMatchObject({ status: 'QUEUED', attempts: 0 })
    expect((await engine.workers()).map(({ workflows }) => workflows)).toEqual([['test/text']])
    await engine.close()
  })
})
