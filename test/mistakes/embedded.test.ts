import { expect, onTestFinished, test } from 'vitest'
import { textLogger } from '../../src/core/engine/ports/logger.js'
import type { Workflow } from '../../src/core/engine/workflow/workflow.js'
import { createApplication, createHandler, issueKey } from '../../src/http/index.js'
import { newWebhookSecret } from '../../src/core/engine/webhooks/signature.js'
import { createEngine } from '../../src/index.js'
import { withStemwork } from '../../src/next/index.js'
import { textWorkflow } from '../engine/harness.js'
import { frameworks, type StartOptions } from '../http/mounts/frameworks.js'
import { freePort } from '../servers/found-server.js'
import { expectToTeach } from './table.js'

const stray = new URL('../runner/fixtures/stray-workflow.mjs', import.meta.url).href
const { default: strayWorkflow } = (await import(stray)) as { default: () => Workflow }

/** An Express application with an engine, as newcomers write it, and its log. */
async function application(workflow: Workflow, bodies?: StartOptions['bodies']) {
  let log = ''
  let heard = () => {}
  const write = (text: string) => {
    log += text
    heard()
  }
  const port = await freePort()
  const engine = createEngine({
    workflows: [workflow],
    logger: textLogger({ write }, 'warn'),
    webhooks: { secret: newWebhookSecret() },
    fetch: { allow: ['127.0.0.1'], ports: [port] },
    child: { nodeArguments: ['--max-old-space-size=60'] },
    dispatch: { niceness: 0 },
  })
  const framework = frameworks.find(({ name }) => name === 'Express 5')
  const { origin, close } = await framework!.start(createHandler(engine, { basePath: '/v1' }), { bodies })
  onTestFinished(async () => {
    await engine.close()
    await close()
  })
  const { id: app } = await createApplication(engine.applications, { name: 'mine' })
  const { key } = await issueKey(engine.applications, app)
  return {
    app,
    engine,
    port,
    log: () => log,
    /** Resolves with a line of the log, once it has been written. */
    async logged(pattern: RegExp): Promise<string> {
      for (;;) {
        const line = log.split('\n').find((each) => pattern.test(each))
        if (line !== undefined) return line
        await new Promise<void>((resolve) => (heard = resolve))
      }
    },
    api: (path: string, headers: Record<string, string> = {}, init: RequestInit = {}) =>
      fetch(`${origin}/media/v1${path}`, { ...init, headers: { authorization: key, ...headers } }),
  }
}

test.each([
  ['function', () => ({ output: 'standalone' })],
  ['promise', Promise.resolve({ output: 'standalone' })],
])('a configuration of Next.js that is a %s', (what, settings) => {
  let message = ''
  try {
    withStemwork(settings as object)
  } catch (error) {
    message = (error as Error).message
  }
  expectToTeach({ what, says: [/withStemwork takes .* object\. .*withStemwork\(await settings\(phase\)\)/] }, message)
})

test('a body that was read before the mount', async () => {
  const { api } = await application(textWorkflow(), 'dropped')
  const body = JSON.stringify({ workflow: 'test/text', params: {} })
  const answer = await api('/job', { 'content-type': 'application/json' }, { method: 'POST', body })
  const { message } = (await answer.json()) as { message: string }
  expectToTeach({ what: 'body', says: [/was read before it reached.*Mount the service before your body/] }, message)
})

test('an unconfigured proxy: once in the log, with what clients get instead of its address', async () => {
  const { api, log } = await application(textWorkflow())
  const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'stems.example.org' }
  await api('/upload')
  expect(log()).toBe('')
  for (let times = 0; times < 2; times++) expect((await api('/upload', headers)).status).toBe(200)
  expect(log().match(/X-Forwarded/g)).toHaveLength(1)
  const says = [/Set publicUrl.*or trustProxy.*"https:\/\/stems\.example\.org".*"links":"http:\/\/127\.0\.0\.1:\d+"/]
  expectToTeach({ what: 'proxy', says }, log())
})

test('a receiver of webhooks that does not exist', async () => {
  const { engine, app, port, logged } = await application(textWorkflow())
  const webhook = { url: `http://127.0.0.1:${port}/hook` }
  const { job } = await engine.submit({ app, workflow: 'test/text', params: {}, webhook })
  await engine.start()
  const line = await logged(/receiver/)
  const says = [/could not be reached.*Check its address/, new RegExp(job.id), new RegExp(`ECONNREFUSED.*:${port}`)]
  expectToTeach({ what: 'receiver', says }, line)
})

test('a workflow that leaks: its jobs continue, and the log names it', async () => {
  const { engine, app, logged } = await application(strayWorkflow())
  const run = async (deed: string) => {
    const { job } = await engine.submit({ app, workflow: 'test/stray', params: { deed } })
    return (await engine.run(job.id))!
  }
  let isNoticed = false
  const line = logged(/left so much/).finally(() => (isNoticed = true))
  while (!isNoticed) expect((await run('leak')).status).toBe('SUCCEEDED')
  expectToTeach({ what: 'leak', says: [/look for what the workflow keeps.*"test\/stray"/] }, await line)
})

test('a workflow that takes more memory than the machine has', async () => {
  const { engine, app, log } = await application(strayWorkflow())
  const { job } = await engine.submit({ app, workflow: 'test/stray', params: { deed: 'hoard' } })
  const ended = await engine.run(job.id)
  expectToTeach({ what: 'memory', says: [/ran out of memory.*Send another copy/] }, ended?.error?.message ?? '')
  expect(log()).toMatch(/heap out of memory/)
})
