import { getPriority } from 'node:os'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { createEngine } from '../../src/create-engine.js'
import { silentLogger } from '../../src/core/engine/ports/logger.js'
import { defineWorkflow } from '../../src/core/engine/workflow/workflow.js'
import { stagesModule } from './run-order.js'

const stages = defineWorkflow({
  id: 'test/stages',
  name: 'Stages',
  description: 'Runs in a child process.',
  params: z.object({ do: z.string() }),
  inputs: [],
  outputs: { report: { fileName: 'report.txt', contentType: 'text/plain' } },
  stages: [
    { name: 'first', async run() {} },
    { name: 'second', async run() {} },
  ],
  module: { url: stagesModule, settings: {} },
})

test('the child processes of an engine have its niceness and are mentioned in its log', async () => {
  const logged: Record<string, unknown>[] = []
  const logger = {
    ...silentLogger,
    debug: (fields: Record<string, unknown>, message: string) => void logged.push({ ...fields, message }),
  }
  const engine = createEngine({ workflows: [stages], dispatch: { niceness: 3 }, logger })
  await engine.start()
  try {
    const ended = new Promise<string>((resolve) => {
      engine.on('job.succeeded', () => resolve('succeeded'))
      engine.on('job.failed', ({ job: { error } }) => resolve(JSON.stringify(error)))
    })
    const { job } = await engine.submit({ app: 'app', workflow: stages.id, params: { do: 'write' } })
    expect(await ended).toBe('succeeded')
    expect((await engine.get(job.id))?.status).toBe('SUCCEEDED')
    const pid = logged.find(({ message }) => message === 'runner process started')?.pid
    expect(getPriority(pid as number)).toBe(3)
  } finally {
    await engine.close()
  }
})

test('the child processes of an engine have the variables and the arguments of `child`', async () => {
  const engine = createEngine({
    workflows: [stages],
    child: { environment: { HOST_SETTING: 'given' }, nodeArguments: ['--max-old-space-size=300'] },
  })
  try {
    const { job } = await engine.submit({ app: 'app', workflow: stages.id, params: { do: 'environment' } })
    const { details } = (await engine.run(job.id)) ?? {}
    expect(details?.environment).toMatchObject({ HOST_SETTING: 'given' })
    expect(details?.execArgv).toContain('--max-old-space-size=300')
  } finally {
    await engine.close()
  }
})

const strayModule = new URL('fixtures/stray-workflow.mjs', import.meta.url).href

test('a module needs no settings', async () => {
  const engine = createEngine({ workflows: [{ ...stages, module: { url: strayModule } as typeof stages.module }] })
  await engine.start()
  await engine.close()
})
