import { readFile, writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { StemworkError } from '../../src/core/engine/errors.js'
import { defineWorkflow, type Workflow } from '../../src/core/engine/workflow/workflow.js'
import type { Steps } from '../../src/core/engine/workflow/steps.js'
import { runWorkflow } from '../../src/testing/index.js'

const day = 24 * 3600 * 1000
const ran: string[] = []
const shout = defineWorkflow({
  id: 'test/shout',
  name: 'Shout',
  description: '',
  params: z.object({ inputUrl: z.url(), mark: z.string().default('!') }),
  outputs: { text: { fileName: 'text.txt', contentType: 'text/plain' } },
  async run({ step, inputs, params, detail }) {
    const text = await step.run('read', async () => {
      ran.push('read')
      return (await readFile(inputs.inputUrl.path, 'utf8')).toUpperCase()
    })
    await step.sleep('pause', day)
    detail('approval', await step.waitFor('approval', { timeoutMs: 7 * day }))
    const { loud } = await step.all(
      {
        loud: async ({ file }) => {
          ran.push('loud')
          await writeFile(file('loud.txt').path, text + params.mark)
          return file('loud.txt')
        },
      },
      { maxAttempts: 2, retryDelayMs: 5_000 },
    )
    return { text: loud }
  },
})

test('a workflow runs in a unit test: waits take no time, events come, and files are given and returned', async () => {
  ran.length = 0
  const inputs = { inputUrl: Buffer.from('hello') }
  const approved = await runWorkflow(shout, { inputs, params: { mark: '?' }, events: { approval: { by: 'Ann' } } })
  expect(approved).toMatchObject({ status: 'SUCCEEDED', attempts: 1, details: { approval: { by: 'Ann' } } })
  expect(approved.outputs.text?.toString()).toBe('HELLO?')
  expect(approved.waitedMs).toBe(day)
  expect((await runWorkflow(shout, { inputs })).waitedMs).toBe(8 * day)
  expect(ran).toEqual(['read', 'loud', 'read', 'loud'])
  await expect(runWorkflow(shout)).rejects.toMatchObject({
    code: 'INVALID_PARAMS',
    message: expect.stringMatching(/^Invalid params for test\/shout: params\.inputUrl: [^{]*\.$/),
  })
  await expect(runWorkflow(shout, { inputs: { inputUrl: 'hello' } })).rejects.toMatchObject({
    code: 'INVALID_PARAMS',
    message: 'inputs.inputUrl: there is no file "hello". Pass the path of one, or its bytes as a Buffer.',
  })
})

test('the failures that the test names occur in its steps, and the job continues as on an engine', async () => {
  ran.length = 0
  const inputs = { inputUrl: Buffer.from('hello') }
  const run = await runWorkflow(shout, { inputs, failures: { read: ['kill'], loud: [new Error('disk full'), 'kill'] } })
  expect(run).toMatchObject({ status: 'SUCCEEDED', waitedMs: 8 * day + 5_000 })
  // The first try of each step was suppressed, so its effects did not happen.
  expect(ran).toEqual(['read', 'loud'])
  expect(run.steps.map(({ name, state, attempts }) => [name, state, attempts])).toEqual([
    ['read', 'done', 1],
    ['pause', 'done', 1],
    ['approval', 'done', 1],
    ['loud', 'done', 2],
  ])

  const failures = { read: Array.from({ length: 3 }, () => new Error('no disk')) }
  const failed = await runWorkflow(shout, { inputs, failures })
  expect(failed).toMatchObject({ status: 'FAILED', attempts: 3, error: { code: 'INTERNAL_ERROR' } })
  expect(failed.error?.cause).toMatchObject({ message: 'no disk' })
  const refused = { read: [new StemworkError('BAD_INPUT', 'That is no text.')] }
  const bad = await runWorkflow(shout, { inputs, failures: refused })
  expect(bad).toMatchObject({
    status: 'FAILED',
    attempts: 1,
    error: { code: 'BAD_INPUT', message: 'That is no text.' },
  })
})

const run = (work: NonNullable<Workflow['run']>) => {
  const facts = { id: 'test/plain', name: 'Plain', description: '', params: z.object({}), inputs: [], outputs: {} }
  return runWorkflow(defineWorkflow({ ...facts, run: work }))
}

test('a wait whose length is no number fails the job, and a limit of months does not end a step at once', async () => {
  const waited = await run(async ({ step }) => void (await step.waitFor('approval', { timeoutMs: Number.NaN })))
  expect(waited.error?.cause).toMatchObject({ message: expect.stringContaining('"approval" waits for NaN') })
  const limited = run(async ({ step }) => step.run('rest', () => delay(20), { timeoutMs: 30 * day }))
  expect(await limited).toMatchObject({ status: 'SUCCEEDED', error: undefined })
})

test('a step or a wait inside a step fails the job: the wait would never end', async () => {
  const begins: ((step: Steps) => Promise<unknown>)[] = [
    (step) => step.run('inner', async () => 1),
    (step) => step.sleep('inner', 10),
  ]
  for (const begin of begins) {
    const { error } = await run(async ({ step }) => void (await step.run('outer', () => begin(step))))
    expect(error?.cause).toMatchObject({ message: expect.stringContaining('"inner" begins inside the step "outer"') })
  }
})
