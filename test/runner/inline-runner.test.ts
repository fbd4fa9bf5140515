import { expect, it } from 'vitest'
import { z } from 'zod'
import { inlineRunner } from '../../src/core/engine/runner/inline-runner.js'
import { defineWorkflow, type Stage } from '../../src/core/engine/workflow/workflow.js'
import { opened, orderTo, rejection, run } from './run-order.js'

const workflowOf = (stage: Stage['run']) =>
  defineWorkflow({
    id: 'test/inline',
    name: 'Inline',
    description: '',
    params: z.unknown(),
    outputs: {},
    stages: [{ name: 'only', run: stage }],
  })

const start = (stage: Stage['run'] = async () => {}) => opened(inlineRunner({ resolve: () => workflowOf(stage) }))

it('runs a workflow module in this process', async () => {
  const { outputs, details } = await run(start(), orderTo('write'))
  expect(outputs.report!.bytes).toBe(5)
  expect(details.pid).toBe(process.pid)
})

it('runs an order without a module with the workflow that it was given', async () => {
  const runner = start(async ({ detail }) => detail('ran', true))
  expect((await run(runner, orderTo('', { module: null }))).details).toEqual({ ran: true })
})

it('rejects at once when aborted, though the stage ignores its signal, and reports nothing afterwards', async () => {
  const aborting = new AbortController()
  const seen: number[] = []
  let finish = () => {}
  const finished = new Promise<void>((resolve) => (finish = resolve))
  const runner = start(async ({ progress }) => {
    queueMicrotask(() => aborting.abort(new Error('stop')))
    await new Promise((resolve) => setTimeout(resolve, 20))
    progress(0.9)
    finish()
  })
  const error = await rejection(
    run(runner, orderTo('', { module: null }), {
      signal: aborting.signal,
      onProgress: ({ progress }) => seen.push(progress),
    }),
  )
  expect(error).toBe(aborting.signal.reason)
  await finished
  expect(seen).toEqual([0])
})

it('rejects the runs in progress when closed, and refuses new ones', async () => {
  const runner = start(
    async ({ signal }) =>
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
  )
  const running = rejection(run(runner, orderTo('', { module: null })))
  expect(runner.status()).toMatchObject({ busy: 1 })
  await runner.close()
  expect(await running).toMatchObject({ code: 'SHUTTING_DOWN' })
  expect(await rejection(run(runner, orderTo('', { module: null })))).toMatchObject({ code: 'SHUTTING_DOWN' })
})

it('survives a listener that throws', async () => {
  const onProgress = () => {
    throw new Error('listener')
  }
  expect((await run(start(), orderTo('write'), { onProgress })).outputs.report!.bytes).toBe(5)
})
